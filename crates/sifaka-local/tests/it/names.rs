//! The model by name.

use sifaka_core::{ErrorKind, Registry, Spec};
use sifaka_local::weights;
use sifaka_testkit::servers;

fn registry() -> Registry {
    let registry = Registry::new();
    sifaka_local::register(&registry);
    registry
}

#[test]
fn a_file_is_a_model_and_its_name_is_what_was_asked() {
    let Some(path) = servers::gguf() else { return };
    let registry = registry();
    let spec = Spec::parse(&format!("local:{},threads=1,context=512", path.display())).unwrap();
    let model = registry.model(&spec).unwrap();
    assert_eq!(model.name(), spec.to_string());
    assert_eq!(model.capabilities().context_window, Some(512));
    let count = model.count_tokens("Hello world");
    assert!(count.exact);
    assert_eq!(count.tokens, 2);
}

#[test]
fn mistakes_are_named() {
    let registry = registry();
    let error = |text: &str| registry.model(&Spec::parse(text).unwrap()).unwrap_err();
    let unknown = error("local:smollm3");
    assert!(
        unknown.suggestions().iter().any(|s| s.contains("smollm2-135m-instruct")),
        "{unknown:?}"
    );
    assert_eq!(error("local:./nowhere.gguf").kind(), ErrorKind::NotFound);
    assert_eq!(error("local:thread=3").kind(), ErrorKind::Configuration);
    assert_eq!(error("local:threads=0").kind(), ErrorKind::Configuration);

    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("notes.gguf");
    std::fs::write(&text, "This is no model.").unwrap();
    let wrong = error(&format!("local:{}", text.display()));
    assert!(wrong.to_string().contains("notes.gguf"), "{wrong}");
}

#[test]
fn what_a_name_needs_is_known_before_anything_is_opened() {
    let needs = |text: &str| {
        let needed = sifaka_local::needs(&Spec::parse(text).unwrap()).unwrap();
        needed.map(|entry| entry.name)
    };
    assert_eq!(needs("local"), Some(weights::DEFAULT));
    assert_eq!(needs("local:threads=1"), Some(weights::DEFAULT));
    assert_eq!(needs("local:smollm2-135m-instruct"), Some("smollm2-135m-instruct"));
    assert_eq!(needs("local:/some/file.gguf"), None);
    assert_eq!(needs("mock"), None);
}
