//! init, doctor, prompts, completions, schema.

use crate::harness::{Place, assert_shown};

#[test]
fn init_then_run() {
    let place = Place::new();
    assert_shown!(place.run(&["init"]));
    place.run(&["init"]).assert_code(7);
    place.write("sifaka.toml", "damaged");
    place.run(&["init", "--force"]).assert_code(0);
    let ran = place.run(&["run", "Summarise version 0.1."]);
    assert!(ran.code == 0 && ran.stdout.split_whitespace().count() >= 20, "{ran:?}");
    // From a folder below, the same file is found.
    std::fs::create_dir(place.path().join("below")).unwrap();
    let mut below = place.command(&["run", "Again."]);
    let child = below.current_dir(place.path().join("below")).spawn().unwrap();
    place.wait(child).assert_code(0);
}

#[test]
fn the_configuration_is_found_in_its_order() {
    let place = Place::new();
    let chain = |reply: &str| format!("[chains.a]\nmodel = \"mock:reply={reply}\"\n");
    let says = |args: &[&str]| place.run(&[&["run", "-q", "Go."], args].concat()).stdout;
    let user = place.path().join("../config/sifaka");
    std::fs::create_dir_all(&user).unwrap();
    std::fs::write(user.join("sifaka.toml"), chain("user")).unwrap();
    assert_eq!(says(&[]), "user\n");
    place.write("sifaka.toml", chain("nearest"));
    assert_eq!(says(&[]), "nearest\n");
    place.write("variable.toml", chain("variable"));
    let mut command = place.command(&["run", "-q", "Go."]);
    let child = command.env("SIFAKA_CONFIG", "variable.toml").spawn().unwrap();
    assert_eq!(place.wait(child).stdout, "variable\n");
    place.write("named.toml", chain("named"));
    assert_eq!(says(&["--config", "named.toml"]), "named\n");
}

#[test]
fn doctor_on_a_fresh_machine() {
    let place = Place::new();
    assert_shown!(place.run(&["doctor"]));
    assert!(!place.journal().exists(), "looking changes nothing");
}

#[test]
fn doctor_sees_what_is_wrong() {
    let place = Place::new();
    place.two_iterations();
    place.write("sifaka.toml", "[chains.good]\nmodel = \"mock\"\n[chains.bad]\nmodel = \"mok\"\n");
    let ran = place.run(&["doctor", "--json"]);
    let findings = ran.assert_code(1).json();
    let state = |what: &str| -> Vec<String> {
        let list = findings.as_array().unwrap().iter().filter(|f| f["what"] == what);
        list.map(|f| f["state"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(state("chain"), ["fail", "ok"]);
    assert_eq!(state("journal"), ["ok"]);
    place.write("file", "");
    let ran = place.run(&["doctor", "--json", "--journal", "file/journal.db"]);
    assert!(ran.assert_code(1).stdout.contains("cannot be made"), "{ran:?}");
}

#[test]
fn prompts_are_listed_and_printed() {
    let place = Place::new();
    assert_shown!(place.run(&["prompts"]));
    let ours = place.run(&["prompts", "improve"]);
    assert!(ours.assert_code(0).stdout.contains("Your previous answer:"));
    place.run(&["prompts", "imporve"]).assert_code(4);
    std::fs::create_dir(place.path().join("mine")).unwrap();
    place.write("mine/generate.md", "MINE {{ prompt }}");
    place.write("sifaka.toml", "[chains.a]\nmodel = \"mock\"\ntemplates = \"mine\"\n");
    let mine = place.run(&["prompts", "generate", "--chain", "a"]);
    assert_eq!(mine.assert_code(0).stdout, "MINE {{ prompt }}\n");
}

#[test]
fn completions_for_every_shell() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let ran = place.run(&["completions", shell]);
        assert!(ran.assert_code(0).stdout.contains("max-iterations"), "{shell}");
    }
}

#[test]
fn the_schema_is_json() {
    let schema = Place::new().run(&["schema"]).json();
    assert!(schema["properties"]["chains"].is_object());
}
