//! Ctrl-C: the first ends the run with what it has, the second ends the program.

use sifaka::{CancellationToken, ErrorKind};

/// Cancels `token` at the first signal and ends the program at the second. What was acknowledged
/// is safe in the journal either way.
pub(crate) fn watch(token: CancellationToken, say: impl Fn(&str) + Send + 'static) {
    tokio::spawn(async move {
        if next().await.is_err() {
            // Without a handler the system's own stays in place, which ends the program.
            return;
        }
        say("ending with what there is; once more ends at once");
        token.cancel();
        if next().await.is_ok() {
            std::process::exit(i32::from(ErrorKind::Cancelled.exit_code()));
        }
    });
}

#[cfg(unix)]
async fn next() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    Ok(())
}

#[cfg(not(unix))]
async fn next() -> std::io::Result<()> {
    tokio::signal::ctrl_c().await
}
