//! Killing the real program at random moments and looking at what is left.
//!
//! Each round starts `sifaka run`, reads the events it tells of, kills it with SIGKILL after a
//! random time, and then asks three things: is everything it told of as done in the journal; does
//! `sifaka verify` find the record intact; does `sifaka resume` bring the run to its end with no
//! more than the call in flight repeated.

use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A campaign against one program.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// The program.
    pub program: PathBuf,
    /// A folder for its journal and script; nothing else may be in it.
    pub folder: PathBuf,
    /// How many runs to kill. Those that end before the kill comes are not counted.
    pub rounds: u32,
    /// Fixes the moments.
    pub seed: u64,
}

/// What a campaign saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Runs that were killed before they ended.
    pub killed: u32,
    /// Runs that had ended before the kill came.
    pub ended_first: u32,
    /// Resumed runs that were killed once more.
    pub killed_again: u32,
    /// Steps the program had told of as done, all of which were found again.
    pub acknowledged: u64,
    /// Calls that were made twice, at most one for each kill.
    pub repeated: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} runs killed, {} of them again on resume, {} ended first; {} acknowledged steps, \
             none lost; {} calls in flight repeated",
            self.killed, self.killed_again, self.ended_first, self.acknowledged, self.repeated
        )
    }
}

/// Each answer names the one before it, so a resumed run goes on wherever it was.
const SCRIPT: &str = r#"
[[reply]]
when = "draft three"
text = "draft four, and it is good"
delay = 0.004

[[reply]]
when = "draft two"
text = "draft three"
delay = 0.004

[[reply]]
when = "draft one"
text = "draft two"
delay = 0.004

[[reply]]
text = "draft one"
delay = 0.004
"#;

const FINAL_TEXT: &str = "draft four, and it is good";

const CONFIG: &str = r#"
journal = "journal.db"
default_chain = "killed"

[chains.killed]
model = "mock:script.toml"
checks = [{ check = "content", require = ["good"] }]
critics = ["scripted:issue=not good yet"]
max_iterations = 5
"#;

impl Campaign {
    /// Runs it.
    ///
    /// # Errors
    /// A sentence saying which round broke which promise.
    pub fn run(&self) -> Result<Report, String> {
        std::fs::write(self.folder.join("script.toml"), SCRIPT).map_err(|e| e.to_string())?;
        std::fs::write(self.folder.join("sifaka.toml"), CONFIG).map_err(|e| e.to_string())?;
        let mut report = Report::default();
        let mut random = self.seed;
        // A few runs are left alone and tell how long one takes.
        let mut takes = Duration::MAX;
        for _ in 0..3 {
            let started = Instant::now();
            let (events, end) = self.tell(&["run", "--events", "Write a draft."], None)?;
            if end != End::Ended || events.is_empty() {
                return Err("a run that was left alone did not end well".to_owned());
            }
            takes = takes.min(started.elapsed());
        }
        while report.killed < self.rounds {
            let round = report.killed + report.ended_first;
            if round > self.rounds.saturating_mul(10) {
                return Err(format!("nearly every run ends before it is killed: {report}"));
            }
            let complain = |what: String| format!("round {round} (seed {}): {what}", self.seed);
            self.round(&mut random, takes, &mut report).map_err(complain)?;
        }
        Ok(report)
    }

    fn round(&self, random: &mut u64, takes: Duration, report: &mut Report) -> Result<(), String> {
        let mut kills = 0;
        let moment = takes.mul_f64(unit(random));
        let (told, end) = self.tell(&["run", "--events", "Write a draft."], Some(moment))?;
        match end {
            End::Ended => report.ended_first += 1,
            End::Killed => {
                report.killed += 1;
                kills += 1;
            }
        }
        let Some(run) = told.first().and_then(|event| event["run_id"].as_str()) else {
            // Killed before it could say anything; the journal must be intact all the same.
            return self.verify();
        };
        self.verify()?;
        report.acknowledged += self.nothing_is_lost(run, &told)?;
        // Now and then the resumed run is killed as well.
        if end == End::Killed && unit(random) < 0.25 {
            let moment = takes.mul_f64(unit(random));
            let (told, end) = self.tell(&["resume", "--events", run], Some(moment))?;
            if end == End::Killed {
                report.killed_again += 1;
                kills += 1;
            }
            self.verify()?;
            report.acknowledged += self.nothing_is_lost(run, &told)?;
        }
        let text = self.ask(&["resume", run])?;
        if text.trim() != FINAL_TEXT {
            return Err(format!("the resumed run {run} ended with {text:?}"));
        }
        self.verify()?;
        let events = self.journalled(run)?;
        let count = |kind: &str| events.iter().filter(|event| event["type"] == kind).count() as u64;
        let (asked, answered) = (count("prompted"), count("generated"));
        if answered != 4 {
            return Err(format!("run {run} has {answered} answers on record, 4 are right"));
        }
        let repeated = asked - answered;
        if repeated > kills {
            return Err(format!("run {run}: {repeated} calls repeated after {kills} kills"));
        }
        report.repeated += repeated;
        Ok(())
    }

    /// Everything up to the last step that was told of as done is in the journal as it was told.
    fn nothing_is_lost(&self, run: &str, told: &[Value]) -> Result<u64, String> {
        let paid = |event: &Value| {
            let kind = event["type"].as_str().unwrap_or_default();
            matches!(
                kind,
                "run_started"
                    | "run_resumed"
                    | "generated"
                    | "called"
                    | "critiqued"
                    | "run_finished"
                    | "run_failed"
            )
        };
        let Some(last) = told.iter().rposition(paid) else { return Ok(0) };
        let kept = self.journalled(run)?;
        let mut steps = 0;
        for event in told[..=last].iter().filter(|event| event["type"] != "delta") {
            let seq = event["seq"].as_u64().ok_or("an event without a number was told")?;
            let found = kept.iter().find(|other| other["seq"].as_u64() == Some(seq));
            if found != Some(event) {
                return Err(format!("event {seq} of run {run} was told of and is lost"));
            }
            steps += u64::from(paid(event));
        }
        Ok(steps)
    }

    fn journalled(&self, run: &str) -> Result<Vec<Value>, String> {
        let lines = self.ask(&["show", "--events", run])?;
        lines.lines().map(|line| serde_json::from_str(line).map_err(|e| e.to_string())).collect()
    }

    fn verify(&self) -> Result<(), String> {
        self.ask(&["verify"]).map(drop)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        let home: &Path = &self.folder;
        command
            .args(arguments)
            .current_dir(home)
            .env_remove("SIFAKA_CONFIG")
            .env("HOME", home)
            .env("XDG_CONFIG_HOME", home.join("config"))
            .env("XDG_DATA_HOME", home.join("data"))
            .stdin(Stdio::null());
        command
    }

    /// What a command that must succeed prints.
    fn ask(&self, arguments: &[&str]) -> Result<String, String> {
        let output = self.command(arguments).output().map_err(|error| error.to_string())?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!("`sifaka {}` failed: {said}", arguments.join(" ")));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The events a command tells of until it ends or is killed, and which it was. One that fails
    /// by itself is an error, with what it said.
    fn tell(
        &self,
        arguments: &[&str],
        kill_after: Option<Duration>,
    ) -> Result<(Vec<Value>, End), String> {
        let mut child = self
            .command(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let output = child.stdout.take().ok_or("no standard output")?;
        let talk = child.stderr.take().ok_or("no standard error")?;
        let lines = std::thread::spawn(move || read_lines(output));
        let said = std::thread::spawn(move || read_all(talk));
        let end = wait_or_kill(&mut child, kill_after);
        let lines = lines.join().map_err(|_| "the reader panicked")?;
        let said = said.join().map_err(|_| "the reader panicked")?;
        match end? {
            Some(end) => Ok((lines, end)),
            None => Err(format!("`sifaka {}` failed by itself: {said}", arguments.join(" "))),
        }
    }
}

/// How a command ended, if it did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// By itself, and well.
    Ended,
    /// By our hand.
    Killed,
}

/// What is there to read, as far as it is text.
fn read_all(mut output: impl Read) -> String {
    let mut bytes = Vec::new();
    // What was read until it broke is worth showing.
    let _ = output.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whole lines of JSON; the last may be cut off by the kill and does not count.
fn read_lines(output: impl Read) -> Vec<Value> {
    let mut reader = BufReader::new(output);
    let (mut lines, mut line) = (Vec::new(), String::new());
    while reader.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
        if line.ends_with('\n') {
            lines.extend(serde_json::from_str::<Value>(&line));
        }
        line.clear();
    }
    lines
}

/// Waits for the child, or kills it at its moment; `None` when it failed by itself.
fn wait_or_kill(child: &mut Child, kill_after: Option<Duration>) -> Result<Option<End>, String> {
    let mut was_ours = false;
    if let Some(moment) = kill_after {
        #[expect(
            clippy::disallowed_methods,
            reason = "the killer waits in real time, in a thread"
        )]
        std::thread::sleep(moment);
        if child.try_wait().map_err(|error| error.to_string())?.is_none() {
            child.kill().map_err(|error| error.to_string())?;
            was_ours = true;
        }
    }
    // It may have ended between our look and our kill: only its status tells.
    let status = child.wait().map_err(|error| error.to_string())?;
    if status.success() {
        return Ok(Some(End::Ended));
    }
    Ok((was_ours && is_by_kill(status)).then_some(End::Killed))
}

#[cfg(unix)]
fn is_by_kill(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    const SIGKILL: i32 = 9;
    status.signal() == Some(SIGKILL)
}

#[cfg(not(unix))]
fn is_by_kill(status: ExitStatus) -> bool {
    !status.success()
}

/// The next of a sequence of numbers in 0..1 (SplitMix64).
fn unit(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn end_of(script: &str, kill_after: Option<Duration>) -> Result<(Vec<Value>, End), String> {
        let folder = std::env::temp_dir();
        let campaign = Campaign { program: "sh".into(), folder, rounds: 1, seed: 1 };
        campaign.tell(&["-c", script], kill_after)
    }

    #[test]
    fn a_program_that_fails_by_itself_was_not_killed() {
        let said = end_of("echo no disk >&2; exit 1", None).unwrap_err();
        assert!(said.contains("failed by itself: no disk"), "{said}");
        let said = end_of("exit 1", Some(Duration::from_secs(1))).unwrap_err();
        assert!(said.contains("failed by itself"), "{said}");
        let by_itself = end_of("kill -9 $$", Some(Duration::from_secs(1)));
        assert!(by_itself.is_err(), "nor one that somebody else killed");
    }

    #[test]
    fn ended_and_killed_are_told_apart() {
        assert_eq!(end_of("echo 1", None), Ok((vec![1.into()], End::Ended)));
        let killed = end_of("echo 1; exec sleep 60", Some(Duration::from_millis(200)));
        assert_eq!(killed.map(|(_, end)| end), Ok(End::Killed));
    }
}
