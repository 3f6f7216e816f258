//! temporary
#![allow(warnings, missing_docs, clippy::all)]
use crate::{gguf::Gguf, kernels::Isa, llama::*, pages::*, team::Team};
pub fn run(path: &str, isa: &str, threads: usize, prompt: usize, count: usize) {
    let t = std::time::Instant::now();
    let isa = match isa { "avx2" => Isa::Avx2, "portable" => Isa::Portable, _ => Isa::Avx512 };
    let g = Gguf::open(path.as_ref() as &std::path::Path).unwrap();
    let m = Llama::read(&g, isa, threads).unwrap();
    println!("load {:?} {} MB", t.elapsed(), m.bytes() >> 20);
    let mut team = Team::new(threads).unwrap();
    let mut s = Scratch::default();
    let mut table = Table::default();
    let tokens: Vec<u32> = (0..prompt as u32).map(|i| 1000 + (i * 7919) % 40000).collect();
    let mut next = 0u32;
    for round in 0..2 {
        table = Table::default();
        let t = std::time::Instant::now();
        for chunk in tokens.chunks(256) {
            let position = table.tokens().len();
            table.extend(&m.shape, chunk);
            let mut e = [Entry { table: &mut table, position, tokens: chunk, wanted: Wanted::Last }];
            m.forward(&mut team, &mut s, &mut e, |_, _, l| { next = (0..l.len()).max_by(|&a, &b| l[a].total_cmp(&l[b])).unwrap() as u32; });
        }
        let el = t.elapsed();
        println!("prompt {} in {:?}: {:.1} tok/s", prompt, el, prompt as f64 / el.as_secs_f64());
        let t = std::time::Instant::now();
        let mut all = vec![];
        for _ in 0..count {
            all.push(next);
            let position = table.tokens().len();
            let tok = [next];
            table.extend(&m.shape, &tok);
            let mut e = [Entry { table: &mut table, position, tokens: &tok, wanted: Wanted::Last }];
            m.forward(&mut team, &mut s, &mut e, |_, _, l| { next = (0..l.len()).max_by(|&a, &b| l[a].total_cmp(&l[b])).unwrap() as u32; });
        }
        let el = t.elapsed();
        println!("count {} in {:?}: {:.1} tok/s {:?}", count, el, count as f64 / el.as_secs_f64(), &all[..all.len().min(12)]);
    }
    for b in [2usize, 4, 8] {
        let mut tables: Vec<Table> = (0..b).map(|_| table.clone()).collect();
        let t = std::time::Instant::now();
        let toks: Vec<[u32;1]> = (0..b).map(|i| [1000 + i as u32]).collect();
        for _ in 0..count {
            for (t, k) in tables.iter_mut().zip(&toks) { t.extend(&m.shape, k); }
            let mut e: Vec<Entry> = tables.iter_mut().zip(&toks).map(|(t, k)| { let position = t.tokens().len() - 1; Entry { table: t, position, tokens: k, wanted: Wanted::Last }}).collect();
            m.forward(&mut team, &mut s, &mut e, |_, _, l| { std::hint::black_box(l[0]); });
        }
        let el = t.elapsed();
        println!("batch {b}: {:.1} tok/s", (b*count) as f64 / el.as_secs_f64());
    }
}
