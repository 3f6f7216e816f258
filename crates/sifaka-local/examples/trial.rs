#![allow(warnings, clippy::all)]
use sifaka_local::*; use sifaka_core::{*, model::*};
#[tokio::main(flavor="current_thread")]
async fn main() { 
    let a: Vec<String> = std::env::args().collect();
    let m = LocalModel::open(&a[1], Default::default()).unwrap();
    let ctx = Context::new();
    let t = std::time::Instant::now();
    m.engine().await.unwrap();
    println!("load {:?}", t.elapsed());
    let mut r = Request::text(a[2].as_str());
    r.sampling.max_tokens = Some(120);
    r.seed = Some(1);
    for n in [1, 1, 4] {
        r.candidates = n;
        let t = std::time::Instant::now();
        let out = m.generate(&ctx, &r).await.unwrap();
        println!("{:?} {:?}", t.elapsed(), out.usage);
        for c in &out.completions { println!("--- {:?}\n{}", c.finish_reason, c.text); }
    }
    r.candidates = 1;
    r.response_format = Some(ResponseFormat::JsonSchema { name: "x".into(), schema: serde_json::json!({"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"},"tags":{"type":"array","items":{"type":"string"}}},"required":["name","age","tags"],"additionalProperties":false}) });
    for _ in 0..2 {
    let t = std::time::Instant::now();
    let out = m.generate(&ctx, &r).await.unwrap();
    println!("{:?} {:?} {:?} {}", t.elapsed(), out.usage, out.completions[0].finish_reason, out.completions[0].text);
    }
    println!("{:?}", m.engine().await.unwrap().statistics());
}
