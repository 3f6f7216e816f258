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

#[test]
fn lesson_13_an_unknown_model_is_an_error_with_suggestions_and_never_the_mock() {
    for name in ["mok", "mock-2", "Mock", "gpt-99-turbo", "nobody:at-all", "mocks:reply=x", "x"] {
        let error = model(name).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration, "{name}");
        assert!(!error.suggestions().is_empty(), "{name}: {error}");
        let said = error.to_string();
        let asked = name.split(':').next().unwrap();
        assert!(said.contains(asked), "{name} is not named in {said}");

        let file = format!("[chains.a]\nmodel = {name:?}");
        let config = sifaka::config::Config::parse(&file).unwrap();
        let error = config.chain("a", &sifaka::registry(), None).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration, "{name} in a file");
    }
    assert!(model("").is_err(), "nor is nothing the mock");
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
