//! A folder of its own for each test, and the program inside it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use regex::Regex;
use tempfile::TempDir;

/// A place with its own home, data and working folder.
pub(crate) struct Place {
    folder: TempDir,
}

/// What the program left behind.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    root: PathBuf,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("project")).unwrap();
        Self { folder }
    }

    /// The working folder.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.folder.path().join("data/sifaka/journal.db")
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path().join(name), content).unwrap();
    }

    /// The program, not started yet.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sifaka"));
        command
            .args(args)
            .current_dir(self.path())
            .env_clear()
            .env("HOME", self.folder.path())
            .env("XDG_DATA_HOME", self.folder.path().join("data"))
            .env("XDG_CONFIG_HOME", self.folder.path().join("config"))
            .env("XDG_CACHE_HOME", self.folder.path().join("cache"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn spawn(&self, args: &[&str]) -> Child {
        self.command(args).spawn().unwrap()
    }

    pub(crate) fn wait(&self, child: Child) -> Ran {
        let output = child.wait_with_output().unwrap();
        Ran {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            root: self.folder.path().canonicalize().unwrap(),
        }
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.wait(self.spawn(args))
    }

    pub(crate) fn run_with(&self, args: &[&str], stdin: &[u8]) -> Ran {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        let bytes = stdin.to_vec();
        let writer = std::thread::spawn(move || {
            // The program may end without reading everything.
            let _ = pipe.write_all(&bytes);
        });
        let ran = self.wait(child);
        writer.join().unwrap();
        ran
    }

    /// The id of the newest run.
    pub(crate) fn newest(&self) -> String {
        let listed = self.run(&["list", "--json", "--limit", "1"]);
        let runs: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
        runs[0]["run_id"].as_str().unwrap().to_owned()
    }

    /// A run that passes at its second try.
    pub(crate) fn two_iterations(&self) -> String {
        let ran = self.run(&[
            "run",
            "--model",
            "mock:replies=too short|long enough at last",
            "--check",
            "length:words=4..8",
            "Write something.",
        ]);
        assert_eq!(ran.code, 0, "{ran:?}");
        self.newest()
    }
}

impl Ran {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn assert_code(&self, code: i32) -> &Self {
        assert_eq!(self.code, code, "{self:?}");
        self
    }

    /// All of it, with what differs from run to run taken out.
    pub(crate) fn shown(&self) -> String {
        let mut text =
            format!("exit {}\n--- stdout\n{}--- stderr\n{}", self.code, self.stdout, self.stderr);
        let rules: [(&str, &str); 11] = [
            (r"[0-9a-f]{64}", "[HASH]"),
            (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "[ID]"),
            (r"@[0-9a-f]{8}\b", "@[PRINT]"),
            (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?Z)?", "[TIME]"),
            (r"\b\d+\.\d{3} s\b", "[SECONDS] s"),
            (r"(\s)\d+\.\d{6}\b", "$1[SECONDS]"),
            (r"\b\d+ MB free", "[SPACE] free"),
            (r"version \d+\.\d+\.\d+", "version [VERSION]"),
            // How long a prompt is changes with every word of its template. None at all would show.
            (r"\b[1-9]\d* tokens in\b", "[TOKENS] tokens in"),
            (r"(?m)^(model:.*\s)[1-9]\d*$", "$1[TOKENS]"),
            (r#"mark="[0-9a-f]+""#, "mark=\"[MARK]\""),
        ];
        for root in [&self.root, Path::new("/private")] {
            text = text.replace(&*root.to_string_lossy(), "[ROOT]");
        }
        for (pattern, name) in rules {
            text = Regex::new(pattern).unwrap().replace_all(&text, name).into_owned();
        }
        text
    }
}

/// A snapshot of what the program left behind.
macro_rules! assert_shown {
    ($ran:expr) => {
        insta::assert_snapshot!($ran.shown())
    };
}
pub(crate) use assert_shown;
