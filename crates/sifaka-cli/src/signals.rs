//! Ctrl-C: the first ends the run with what it has, the second ends the program.

use std::io;

use sifaka::{CancellationToken, ErrorKind};

/// Cancels `token` at the first signal and ends the program at the second. What was acknowledged
/// is safe in the journal either way.
///
/// Signals are heard from the moment this returns.
pub(crate) fn watch(
    token: CancellationToken,
    say: impl Fn(&str) + Send + 'static,
) -> io::Result<()> {
    let mut signals = Signals::new()?;
    tokio::spawn(async move {
        signals.next().await;
        say("ending with what there is; once more ends at once");
        token.cancel();
        signals.next().await;
        std::process::exit(i32::from(ErrorKind::Cancelled.exit_code()));
    });
    Ok(())
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(windows)]
struct Signals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Signals {
    fn new() -> io::Result<Self> {
        tokio::signal::windows::ctrl_c().map(Self)
    }

    async fn next(&mut self) {
        // `None` means that there will be no more, which is as good as silence.
        if self.0.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}
