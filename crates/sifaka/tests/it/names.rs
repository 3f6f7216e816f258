//! Components by name.

use sifaka::prelude::*;

#[test]
fn unknown_names_are_errors_with_the_nearest_known_ones() {
    let error = model("mok").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert_eq!(error.suggestions()[0], "did you mean mock?");
    assert!(validator("lenght:words=5").unwrap_err().suggestions()[0].contains("length"));
    assert!(critic("nobody-by-that-name").is_err());
    assert!(retriever("nowhere-by-that-name").is_err());
}

#[tokio::test]
async fn a_chain_of_named_parts_runs() {
    let chain = Chain::builder(model("mock").unwrap())
        .validate(validator("length:words=20..60").unwrap())
        .build()
        .unwrap();
    let outcome = chain.run("Explain what a lemur is.").await.unwrap();
    assert!(outcome.passed(), "{}", outcome.explain());
    assert_eq!(outcome.thought().iteration(), 1, "the first text is too short");
}
