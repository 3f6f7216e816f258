use std::sync::Arc;

use serde_json::json;
use sifaka_core::{Context, Error, ErrorKind, Filter, Registry, Retriever, Spec};

use crate::find;

fn registry() -> Registry {
    let registry = Registry::new();
    sifaka_retrieval::register(&registry);
    registry
}

fn retriever(spec: &str) -> Arc<dyn Retriever> {
    registry().retriever(&Spec::parse(spec).unwrap()).unwrap()
}

fn error(spec: &str) -> Error {
    registry().retriever(&Spec::parse(spec).unwrap()).unwrap_err()
}

#[tokio::test]
async fn texts_can_be_written_as_options() {
    assert_eq!(find(&retriever("mock:text=one, two"), "two", 9).await, ["one, two"]);
    let both = retriever("mock:texts=one, two|three,all=true,name=notes");
    assert_eq!(both.name(), "notes");
    assert_eq!(find(&both, "three", 9).await, ["three", "one, two"]);
    let table = json!({"texts": ["a|b", "c"], "all": true});
    let spec = Spec::from_parts("mock", table.as_object().unwrap().clone());
    let listed = registry().retriever(&spec).unwrap();
    assert_eq!(find(&listed, "x", 9).await, ["a|b", "c"]);
}

#[tokio::test]
async fn a_file_is_named_by_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.txt");
    std::fs::write(&path, "one\n\ntwo").unwrap();
    let path = path.to_str().unwrap();
    for spec in
        [format!("mock:{path}"), format!("mock:{path},all=true"), format!("mock:path={path}")]
    {
        assert_eq!(find(&retriever(&spec), "two", 9).await[0], "two", "{spec}");
    }
    assert!(error(&format!("mock:{path},text=x")).message().contains("exclude"));
}

#[tokio::test(start_paused = true)]
async fn errors_and_delays_can_be_written_as_options() {
    let ctx = Context::new();
    let docs = retriever("mock:text=one,error=overloaded,retry_after=2,times=1,delay=3");
    let before = ctx.monotonic();
    let error = docs.retrieve(&ctx, "one", 9, &Filter::All).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Overloaded);
    assert_eq!(error.retry_after().unwrap().as_secs(), 2);
    assert_eq!(docs.retrieve(&ctx, "one", 9, &Filter::All).await.unwrap().len(), 1);
    assert_eq!((ctx.monotonic() - before).as_secs(), 6);
}

#[test]
fn mistakes_are_reported_together_and_with_suggestions() {
    assert!(error("mock").suggestions()[0].contains("mock:text="));
    let several = error("mock:txt=x,delay=-1,error=timeot");
    assert_eq!(several.all_problems().len(), 3, "{several}");
    assert_eq!(several.component(), "retriever mock");
    assert!(error("mock:text=x,times=2").message().contains("belongs to an error"));
    assert!(error("mok").suggestions()[0].contains("mock"));
    assert_eq!(registry().retrievers.list()[0].name, "mock");
}
