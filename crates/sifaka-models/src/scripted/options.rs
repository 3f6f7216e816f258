//! A scripted model from what the user wrote: `mock:replies=a|b,delay=0.1`.

use std::path::Path;
use std::time::Duration;

use sifaka_core::model::Price;
use sifaka_core::spec::OptionReader;
use sifaka_core::{Cost, Error, Result, Spec};

use super::ScriptedModel;
use crate::script::{Exhausted, options};

/// What options and script files may both set.
#[derive(Debug, Default)]
pub(super) struct Settings {
    pub(super) exhausted: Option<Exhausted>,
    pub(super) delay: Option<Duration>,
    pub(super) chunk_delay: Option<Duration>,
    pub(super) price_in: Option<f64>,
    pub(super) price_out: Option<f64>,
    pub(super) context_window: Option<u64>,
}

impl Settings {
    fn read(reader: &mut OptionReader<'_>) -> Self {
        Self {
            exhausted: options::exhausted(reader),
            delay: options::seconds(reader, "delay"),
            chunk_delay: options::seconds(reader, "chunk_delay"),
            price_in: reader.number("price_in"),
            price_out: reader.number("price_out"),
            context_window: reader.count("context_window"),
        }
    }

    /// The model with these set; a sentence when the prices are not a price.
    pub(super) fn apply(self, mut model: ScriptedModel) -> Result<ScriptedModel, String> {
        if let Some(exhausted) = self.exhausted {
            model = model.when_exhausted(exhausted);
        }
        model.delay = self.delay.unwrap_or(model.delay);
        model.chunk_delay = self.chunk_delay.unwrap_or(model.chunk_delay);
        if let Some(window) = self.context_window {
            model = model.with_context_window(window);
        }
        match (self.price_in, self.price_out) {
            (None, None) => Ok(model),
            (Some(input), Some(output)) if input >= 0.0 && output >= 0.0 => {
                Ok(model.with_price(Price {
                    input_per_million: Cost::from_dollars(input),
                    output_per_million: Cost::from_dollars(output),
                    cached_per_million: None,
                }))
            }
            (Some(_), Some(_)) => Err("a price is negative".to_owned()),
            _ => Err("price_in and price_out belong together; only one is given".to_owned()),
        }
    }
}

/// The model that `spec` describes. It keeps no calls: nobody could ask it for them.
///
/// # Errors
/// [`ErrorKind::Configuration`](sifaka_core::ErrorKind::Configuration) with every problem.
pub(crate) fn from_spec(spec: &Spec) -> Result<ScriptedModel> {
    let component = "model mock";
    let mut reader = spec.reader();
    let script = reader.text("script");
    let reply = reader.text("reply");
    let replies = options::texts(spec, &mut reader, "replies");
    let lead = options::positional(spec);
    let given = [script.is_some(), reply.is_some(), replies.is_some(), lead.is_some()];
    if given.iter().filter(|given| **given).count() > 1 {
        reader.complain("script", "script, reply and replies exclude each other; give one");
    }
    let settings = Settings::read(&mut reader);
    if settings.exhausted.is_some() && !given.contains(&true) {
        reader.complain("exhausted", "the built-in model has no sequence that could end");
    }
    reader.finish().map_err(|error| error.in_component(component))?;
    let model = match (script.or(lead), reply, replies) {
        (Some(path), _, _) => ScriptedModel::from_file(Path::new(&path))?,
        (None, Some(reply), _) => ScriptedModel::new([reply]),
        (None, None, Some(replies)) => ScriptedModel::new(replies),
        (None, None, None) => ScriptedModel::built_in(),
    };
    let model = settings.apply(model).map_err(|problem| {
        Error::configuration(component, problem)
            .suggest("give both prices, in dollars for a million tokens: price_in=1,price_out=2")
    })?;
    Ok(model.keep_calls(0))
}
