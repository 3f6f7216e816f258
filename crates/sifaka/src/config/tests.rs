//! The file as a whole: where it is found, what is wrong with it, what its schema says.

use std::collections::BTreeSet;

use serde_json::Value;
use sifaka_core::ErrorKind;
use sifaka_resilience::{RateLimit, Resilience};

use super::*;

#[test]
fn the_file_that_is_named_wins_then_the_nearest_then_the_users() {
    let root = tempfile::tempdir().unwrap();
    let (deep, user) = (root.path().join("a/b"), root.path().join("user.toml"));
    std::fs::create_dir_all(&deep).unwrap();
    let named = Path::new("named.toml");
    let variable = Path::new("variable.toml");
    let nearest = root.path().join("a").join(FILE_NAME);
    assert_eq!(find(&deep, None, None, Some(&user)), None);
    std::fs::write(&user, "").unwrap();
    assert_eq!(find(&deep, None, None, Some(&user)), Some(user.clone()));
    std::fs::write(root.path().join(FILE_NAME), "").unwrap();
    std::fs::write(&nearest, "").unwrap();
    assert_eq!(find(&deep, None, None, Some(&user)), Some(nearest));
    assert_eq!(find(&deep, None, Some(variable), None), Some(variable.to_owned()));
    assert_eq!(find(&deep, Some(named), Some(variable), None), Some(named.to_owned()));
}

#[test]
fn a_named_file_must_be_there() {
    let error = Config::load(Path::new("/nowhere/at/all.toml")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Configuration);
    assert!(error.to_string().contains("/nowhere/at/all.toml"), "{error}");
}

#[test]
fn paths_start_from_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE_NAME);
    std::fs::write(&path, "journal = \"log/runs.db\"").unwrap();
    let config = Config::load(&path).unwrap();
    assert_eq!(config.journal_path(), Some(folder.path().join("log/runs.db")));
    assert_eq!(Config::default().journal_path(), None);
}

#[test]
fn a_mistake_has_its_line_its_column_and_the_nearest_key() {
    let error = Config::parse("[chains.a]\nmodel = \"mock\"\nmax_iteration = 3\n").unwrap_err();
    assert_eq!(error.message(), "line 3, column 1: unknown field `max_iteration`");
    assert_eq!(error.suggestions(), ["did you mean max_iterations?"]);
    let error = Config::parse("[chains.a]\n  samples = \"two\"\n").unwrap_err();
    assert!(error.message().starts_with("line 2, column 13: "), "{error}");
    let error = Config::parse("[chains.a]\ncritics_when = \"allways\"\n").unwrap_err();
    assert_eq!(error.suggestions(), ["did you mean always?"]);
    assert!(Config::parse("[chains.a.budget]\ncalls = -1\n").is_err());
    assert!(Config::parse("[chains.a.resilience]\nretires = false\n").is_err());
}

#[test]
fn the_chain_is_the_one_named_the_default_or_the_only_one() {
    let two = "[chains.notes]\nmodel=\"mock\"\n[chains.other]\nmodel=\"mock\"\n";
    let config = Config::parse(two).unwrap();
    assert_eq!(config.pick(Some("other")).unwrap().0, "other");
    let error = config.pick(None).unwrap_err();
    assert!(error.suggestions()[0].contains("notes, other"), "{error:?}");
    let error = config.pick(Some("note")).unwrap_err();
    assert_eq!(error.suggestions(), ["did you mean notes?"]);
    let config = Config::parse(&format!("default_chain = \"other\"\n{two}")).unwrap();
    assert_eq!(config.pick(None).unwrap().0, "other");
    let config = Config::parse("[chains.only]").unwrap();
    assert_eq!(config.pick(None).unwrap().0, "only");
    assert!(Config::default().pick(None).is_err());
    assert!(Config::parse("default_chain = \"x\"").is_err());
}

#[test]
fn every_problem_of_a_chain_is_reported_at_once() {
    let config = Config::parse(
        r#"[chains.a]
           model = "mok"
           checks = ["lenght:words=5", { forbid = ["x"] }]
           critics = ["nobody"]
           retrievers = ["nowhere"]
           policy = "fresh:0"
           redact = ["("]
           samples = 0
           budget = { time = -1.0, cost = 1.0 }
           stop = { deadline = -1.0 }
        "#,
    )
    .unwrap();
    let error = config.chain("a", &crate::registry(), None).unwrap_err();
    let places: Vec<&str> = error.all_problems().iter().map(|p| p.place.as_str()).collect();
    let expected = [
        "model",
        "checks[0]",
        "checks[1]",
        "critics[0]",
        "retrievers[0]",
        "policy",
        "redact[0]",
        "budget.time",
        "stop.deadline",
        "samples",
    ];
    assert_eq!(places, expected, "{error}");
    assert!(error.to_string().contains("did you mean mock?"), "{error}");
    assert!(error.to_string().contains("did you mean length?"), "{error}");
}

#[test]
fn a_component_is_a_text_or_a_table() {
    let config = Config::parse(
        "[chains.a]\nmodel = { name = \"mock:x\", delay = 1 }\nchecks = [{ check = 3 }, 4]",
    );
    assert!(config.is_err(), "a number is neither");
    let table = |text: &str| -> Component {
        Config::parse(&format!("[chains.a]\nmodel = {text}")).unwrap().chains["a"]
            .model
            .clone()
            .unwrap()
    };
    let spec = table("{ name = \"mock\", delay = 1 }").spec("name").unwrap();
    assert_eq!((spec.name(), &spec.options()["delay"]), ("mock", &Value::from(1)));
    assert_eq!(
        table("{ name = \"mock:a.toml\" }").spec("name").unwrap().argument(),
        Some("a.toml")
    );
    assert!(table("{ name = \"mock:a.toml\", delay = 1 }").spec("name").is_err());
    assert!(table("{ name = 3 }").spec("name").is_err());
    assert!(table("{ delay = 3 }").spec("name").is_err());
}

/// Names of the properties of a schema's object, by the path of the table they stand in.
fn properties(schema: &Value, at: &Value, table: &str, found: &mut BTreeSet<String>) {
    if let Some(name) = at.get("$ref").and_then(Value::as_str) {
        let name = name.trim_start_matches("#/$defs/");
        properties(schema, &schema["$defs"][name], table, found);
    }
    for key in ["anyOf", "oneOf"] {
        let branches = at.get(key).and_then(Value::as_array).into_iter().flatten();
        branches.for_each(|branch| properties(schema, branch, table, found));
    }
    for (key, value) in at.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let path = if table.is_empty() { key.clone() } else { format!("{table}.{key}") };
        properties(schema, value, &path, found);
        found.insert(path);
    }
    if let Some(value) = at.get("additionalProperties").filter(|v| v.is_object()) {
        properties(schema, value, &format!("{table}.*"), found);
    }
}

/// Every option there is, such as `chains.*.budget.calls`.
pub(super) fn options() -> BTreeSet<String> {
    let (schema, mut found) = (schema(), BTreeSet::new());
    properties(&schema, &schema, "", &mut found);
    found
}

fn keys(value: &Value, table: &str, found: &mut BTreeSet<String>) {
    for (key, value) in value.as_object().into_iter().flatten() {
        let path = format!("{table}.{key}");
        keys(value, &path, found);
        found.insert(path);
    }
}

#[test]
fn the_schema_has_the_fields_of_the_types_behind_it() {
    let resilience = Resilience::default().with_rate_limit(RateLimit::default());
    let sampling: sifaka_core::model::Sampling = serde_json::from_value(serde_json::json!({
        "temperature": 1.0, "top_p": 1.0, "top_k": 1, "min_p": 1.0,
        "repetition_penalty": 1.0, "max_tokens": 1,
    }))
    .unwrap();
    let mut real = BTreeSet::new();
    for (name, value) in [
        ("resilience", serde_json::to_value(resilience).unwrap()),
        ("sampling", serde_json::to_value(sampling).unwrap()),
    ] {
        keys(&value, &format!("chains.*.{name}"), &mut real);
    }
    let below = |o: &String| o.contains(".resilience.") || o.contains(".sampling.");
    let said: BTreeSet<String> = options().into_iter().filter(below).collect();
    assert_eq!(said, real);
}

#[test]
fn the_committed_schema_is_the_generated_one() {
    let committed = include_str!("../../../../docs/reference/sifaka.schema.json");
    let generated = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    assert!(
        committed == generated,
        "run `sifaka schema > docs/reference/sifaka.schema.json` and look at what changed"
    );
}

#[test]
fn the_commented_file_works_as_it_is_and_shows_every_option() {
    let config = Config::parse(COMMENTED).unwrap();
    config.chain("notes", &crate::registry(), None).unwrap();
    // The same with every example taken in.
    let is_option = |line: &str| {
        let word = line.split(" = ").next().unwrap_or_default();
        line.contains(" = ") && word.chars().all(|c| c.is_ascii_lowercase() || c == '_')
    };
    let uncommented: Vec<&str> = COMMENTED
        .lines()
        .map(|line| line.strip_prefix("# ").filter(|rest| is_option(rest)).unwrap_or(line))
        .collect();
    let whole = uncommented.join("\n");
    Config::parse(&whole).unwrap();
    let value: Value = toml::from_str(&whole).unwrap();
    let mut shown = BTreeSet::new();
    keys(&value, "", &mut shown);
    let shown: BTreeSet<String> =
        shown.iter().map(|key| key[1..].replace("chains.notes", "chains.*")).collect();
    let missing: Vec<String> = options()
        .into_iter()
        // The purse of retries is for those who look for it in the reference.
        .filter(|option| !option.contains("retry.budget") && !shown.contains(option))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn redaction_is_the_named_chains_the_default_ones_or_every_chains() {
    let two = "[chains.a]\nredact = [\"one\"]\n[chains.b]\nredact = [\"two\"]\n[chains.c]\n";
    let taken = |config: &Config, name| {
        let event = sifaka_core::Event {
            run_id: sifaka_core::Id::derived(b"run"),
            seq: 0,
            time: sifaka_core::Context::new().now(),
            kind: sifaka_core::EventKind::Noted { name: "note".into(), data: "one two".into() },
        };
        let redaction = config.redaction(name).unwrap()?;
        match redaction.apply(&event).unwrap().kind {
            sifaka_core::EventKind::Noted { data, .. } => data.as_str().map(str::to_owned),
            other => panic!("{other:?}"),
        }
    };
    let config = Config::parse(two).unwrap();
    assert_eq!(taken(&config, None).unwrap(), "[redacted] [redacted]");
    assert_eq!(taken(&config, Some("b")).unwrap(), "one [redacted]");
    assert_eq!(taken(&config, Some("c")), None);
    assert!(config.redaction(Some("d")).is_err());
    let config = Config::parse(&format!("default_chain = \"a\"\n{two}")).unwrap();
    assert_eq!(taken(&config, None).unwrap(), "[redacted] two");
    assert_eq!(taken(&Config::default(), None), None);
    let error = Config::parse("[chains.a]\nredact = [\"(\"]").unwrap().redaction(None).unwrap_err();
    assert_eq!(error.all_problems()[0].place, "redact[0]");
}
