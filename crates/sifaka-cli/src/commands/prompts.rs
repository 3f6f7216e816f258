//! `sifaka prompts`.

use sifaka::near::nearest;
use sifaka::prompt::Prompts;
use sifaka::{Error, ErrorKind, Result};

use super::DONE;
use super::setup::Setup;
use crate::app::App;
use crate::args::ChainArgs;

pub(super) fn run(app: &App, name: Option<&str>, chain: Option<&str>) -> Result<u8> {
    let prompts = match chain {
        None => Prompts::built_in()?,
        Some(chain) => {
            let args = ChainArgs { chain: Some(chain.to_owned()), ..ChainArgs::default() };
            let setup = Setup::new(app.config()?, &args, None)?;
            let (recorded, _) = setup.journals(app, false)?;
            setup.build(recorded, None)?.prompts().clone()
        }
    };
    let names = prompts.names();
    let Some(name) = name else {
        names.iter().try_for_each(|name| app.out.line(name))?;
        return Ok(DONE);
    };
    match prompts.source(name) {
        Some(source) => app.out.text(&source).map(|()| DONE),
        None => {
            let message = format!("no template is called {name:?}");
            let near = nearest(name, names.iter().map(String::as_str)).join(" or ");
            let hint = if near.is_empty() {
                format!("templates are: {}", names.join(", "))
            } else {
                format!("did you mean {near}?")
            };
            Err(Error::new(ErrorKind::NotFound, "prompts", "print", message).suggest(hint))
        }
    }
}
