//! `sifaka schema`.

use sifaka::Result;

use super::DONE;
use crate::app::App;

pub(super) fn run(app: &App) -> Result<u8> {
    app.out.json(&sifaka::config::schema()).map(|()| DONE)
}
