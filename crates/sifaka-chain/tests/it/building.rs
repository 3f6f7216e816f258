//! Building a chain: every problem at once, and every option has an effect.

use sifaka_chain::{Chain, CriticsWhen};
use sifaka_core::constraint::{Range, Unit};
use sifaka_core::model::Sampling;
use sifaka_core::{
    Budget, Constraint, Context, Cost, Draft, Result, ValidationResult, Validator, check,
};

use crate::kit::{Finds, Script, wants_good};

#[test]
fn every_problem_is_reported_at_once_with_what_to_do() {
    let error = Chain::builder(Script::says(["x"]))
        .name("a@b")
        .samples(0)
        .max_iterations(0)
        .critic(Finds::new("c", "x"))
        .budget(Budget::cost(Cost::from_dollars(1.0)))
        .sampling(Sampling { temperature: Some(-1.0), ..Sampling::default() })
        .template("generat", "x")
        .build()
        .unwrap_err();
    let problems = error.all_problems();
    assert!(problems.len() >= 6, "{error}");
    assert!(problems.iter().all(|problem| !problem.suggestion.is_empty()), "{error}");
    let text = error.to_string();
    for part in ["name", "samples", "max_iterations", "budget.cost", "temperature", "generat"] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
}

struct Words(Range);

#[async_trait::async_trait]
impl Validator for Words {
    fn name(&self) -> &'static str {
        "words"
    }
    async fn validate(&self, _: &Context, _: &Draft<'_>) -> Result<ValidationResult> {
        Ok(ValidationResult::passed("ok"))
    }
    fn constraints(&self) -> Vec<Constraint> {
        vec![Constraint::Count { unit: Unit::Words, range: self.0 }]
    }
}

#[test]
fn checks_that_contradict_each_other_are_named() {
    let error = Chain::builder(Script::says(["x"]))
        .validate(Words(Range::at_least(50)))
        .validate(Words(Range::at_most(10)))
        .build()
        .unwrap_err();
    assert!(error.to_string().contains("validators words and words-2"), "{error}");
    assert!(error.to_string().contains("at least 50 and at most 10"), "{error}");
}

#[test]
fn a_changed_chain_has_another_id() {
    let id = |chain: sifaka_chain::ChainBuilder| chain.build().unwrap().id().to_owned();
    let base = || wants_good(Script::says(["x"]));
    let first = id(base());
    assert_eq!(first, id(base()));
    for changed in [
        base().max_iterations(7),
        base().system("s"),
        base().validate(check("more", |_| true)),
        base().critic(Finds::new("c", "x")),
        base().critics_when(CriticsWhen::Never),
        base().template("generate", "{{ prompt }}!"),
        base().samples(2),
        base().seed(4),
        base().budget(Budget::calls(9)),
        base().guide(sifaka_chain::Guide::Off),
    ] {
        assert_ne!(first, id(changed));
    }
    assert!(id(base().name("notes")).starts_with("notes@"));
}

#[tokio::test]
async fn options_reach_the_model() {
    let model = Script::says(["good"]);
    let chain = wants_good(model.clone())
        .system("Be brief.")
        .sampling(Sampling { temperature: Some(0.3), max_tokens: Some(99), ..Sampling::default() })
        .stop_texts(["END"])
        .seed(5)
        .template("generate", "Please: {{ prompt }}")
        .build()
        .unwrap();
    chain.run("Write.").await.unwrap();
    let request = &model.requests()[0];
    assert_eq!(request.system.as_deref(), Some("Be brief."));
    assert_eq!(request.sampling.temperature, Some(0.3));
    assert_eq!(request.sampling.max_tokens, Some(99));
    assert_eq!((request.stop.as_slice(), request.seed), (&["END".to_owned()][..], Some(5)));
    assert_eq!(request.last_text(), "Please: Write.");
}

#[tokio::test]
async fn each_iteration_has_a_seed_of_its_own() {
    let model = Script::says(["a", "b", "c", "d"]);
    wants_good(model.clone()).seed(5).build().unwrap().run("Write.").await.unwrap();
    let mut seeds: Vec<_> = model.requests().iter().map(|r| r.seed).collect();
    seeds.dedup();
    assert_eq!(seeds.len(), 4);
}

#[test]
fn a_plan_shows_the_first_prompt_and_the_steps() {
    let chain = wants_good(Script::says(["x"])).critic(Finds::new("c", "x")).build().unwrap();
    let plan = chain.plan("Write.").unwrap();
    assert_eq!(plan.prompt, "Write.");
    assert_eq!(plan.max_generations, 4);
    assert_eq!(plan.max_cost, None);
    assert!(plan.cost_note.unwrap().contains("not known"));
    assert_eq!(plan.steps[0], "write with script");
    assert!(plan.steps.iter().any(|step| step.contains("check good")));
    assert!(chain.plan(" ").is_err());
}
