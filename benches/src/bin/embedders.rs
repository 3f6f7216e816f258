//! Which embedder finds more: MiniLM, the static one, and each together with keyword search, on the
//! Cranfield collection; and how many texts a second they do. Prints JSON.
//!
//! Weights are looked for as the trials do, below `SIFAKA_TEST_WEIGHTS` or the user's cache; data
//! where `SIFAKA_DATA` says, or beside the checkout.
//!
//! `cargo run --release -p sifaka-benches --bin embedders`

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that reports")]

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sifaka_benches::Machine;
use sifaka_core::{Context, Embedder};
use sifaka_local::embed::{MiniLm, StaticEmbedder};

type Failure = Box<dyn std::error::Error>;

/// How many found documents count.
const CUT: usize = 10;

#[tokio::main]
async fn main() -> ExitCode {
    match report().await {
        Ok(report) => {
            println!("{report:#}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn report() -> Result<Value, Failure> {
    let collection = Collection::read()?;
    let weights = weights()?;
    let minilm = MiniLm::open(&weights.join("all-minilm-l6-v2"))?;
    let table = StaticEmbedder::open(&weights.join("wordllama-256"))?;
    let keywords = collection.by_keywords();
    let by_minilm = collection.by_vectors(&minilm).await?;
    let by_table = collection.by_vectors(&table).await?;
    let score = |rankings: &[Vec<usize>]| collection.score(rankings);
    let cores = std::thread::available_parallelism()?.get();
    Ok(json!({
        "command": "cargo run --release -p sifaka-benches --bin embedders",
        "seed": "none, nothing is drawn",
        "machine": format!("{cores} cores, {}", Machine::measure()?),
        "collection": {
            "name": "Cranfield", "documents": collection.documents.len(),
            "queries": collection.queries.len(),
        },
        "found": {
            "keywords": score(&keywords),
            "minilm": score(&by_minilm),
            "static": score(&by_table),
            "keywords and minilm": score(&fuse(&keywords, &by_minilm)),
            "keywords and static": score(&fuse(&keywords, &by_table)),
            "minilm and static": score(&fuse(&by_minilm, &by_table)),
        },
        "speed": {
            "minilm": collection.speed(&minilm).await?,
            "static": collection.speed(&table).await?,
        },
    }))
}

fn weights() -> Result<PathBuf, Failure> {
    if let Some(folder) = std::env::var_os("SIFAKA_TEST_WEIGHTS") {
        return Ok(folder.into());
    }
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache = cache.or_else(home).ok_or("neither SIFAKA_TEST_WEIGHTS nor HOME is set")?;
    Ok(cache.join("sifaka").join("weights"))
}

fn data() -> PathBuf {
    std::env::var_os("SIFAKA_DATA").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared/data"),
        PathBuf::from,
    )
}

/// Documents, queries, and how relevant which document is to which query.
struct Collection {
    documents: Vec<String>,
    queries: Vec<String>,
    grades: Vec<HashMap<usize, f64>>,
}

impl Collection {
    fn read() -> Result<Self, Failure> {
        let folder = data().join("cranfield");
        let read = |name: &str| {
            let path = folder.join(name);
            std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
        };
        let documents = texts(&read("cran.all.1400")?);
        let queries = texts(&read("cran.qry")?);
        let mut grades = vec![HashMap::new(); queries.len()];
        for line in read("QRelsCorrectedforTRECeval")?.lines() {
            let fields: Vec<usize> =
                line.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
            let [query, _, document, grade] = fields[..] else {
                return Err(format!("not a judgement: {line}").into());
            };
            // Both are numbered by their place, from 1.
            let query = grades.get_mut(query - 1).ok_or("a judgement of no query")?;
            query.insert(document - 1, grade as f64);
        }
        Ok(Self { documents, queries, grades })
    }

    /// Documents by BM25 for each query, best first.
    fn by_keywords(&self) -> Vec<Vec<usize>> {
        const K1: f64 = 1.2;
        const B: f64 = 0.75;
        let words: Vec<Vec<String>> = self.documents.iter().map(|text| words(text)).collect();
        let mut postings: HashMap<&str, HashMap<usize, f64>> = HashMap::new();
        for (document, words) in words.iter().enumerate() {
            for word in words {
                *postings.entry(word).or_default().entry(document).or_default() += 1.0;
            }
        }
        let count = words.len() as f64;
        let mean = words.iter().map(Vec::len).sum::<usize>() as f64 / count;
        let rank = |query: &String| {
            let mut scores = vec![0.0; words.len()];
            for found in self::words(query).iter().filter_map(|word| postings.get(word.as_str())) {
                let having = found.len() as f64;
                let rarity = (1.0 + (count - having + 0.5) / (having + 0.5)).ln();
                for (document, times) in found {
                    let length = 1.0 - B + B * words[*document].len() as f64 / mean;
                    scores[*document] += rarity * times * (K1 + 1.0) / (times + K1 * length);
                }
            }
            order(&scores)
        };
        self.queries.iter().map(rank).collect()
    }

    /// Documents by the closeness of their vectors for each query, best first.
    async fn by_vectors(&self, embedder: &dyn Embedder) -> Result<Vec<Vec<usize>>, Failure> {
        let documents = embed(embedder, &self.documents).await?;
        let rank = |query: &Vec<f32>| {
            let dot = |document: &Vec<f32>| {
                let products = query.iter().zip(document).map(|(a, b)| f64::from(a * b));
                products.sum::<f64>()
            };
            order(&documents.iter().map(dot).collect::<Vec<_>>())
        };
        Ok(embed(embedder, &self.queries).await?.iter().map(rank).collect())
    }

    /// How good rankings are. Each query has one document of grade 5, the last of its list, and
    /// keyword search finds those best of all, so they count as relevant here. Some leave them out,
    /// so both readings are given.
    fn score(&self, rankings: &[Vec<usize>]) -> Value {
        let (recall, gain) = self.means(rankings, 5.0);
        let (lower_recall, lower_gain) = self.means(rankings, 4.0);
        json!({
            "recall@10": recall, "ndcg@10": gain,
            "without grade 5": {"recall@10": lower_recall, "ndcg@10": lower_gain},
        })
    }

    /// Means over the queries: the share of relevant documents among the first ten, and the
    /// discounted sum of their grades as a share of the best possible.
    fn means(&self, rankings: &[Vec<usize>], highest: f64) -> (f64, f64) {
        let (mut recall, mut gain) = (0.0, 0.0);
        for (ranking, grades) in rankings.iter().zip(&self.grades) {
            let mut grades = grades.clone();
            grades.retain(|_, grade| *grade <= highest);
            let discounted = |grades: &[f64]| {
                let places = grades.iter().take(CUT).zip(2_u32..);
                places.map(|(grade, place)| grade / f64::from(place).log2()).sum::<f64>()
            };
            let found: Vec<f64> = ranking
                .iter()
                .take(CUT)
                .map(|document| grades.get(document).copied().unwrap_or_default())
                .collect();
            let mut best: Vec<f64> = grades.values().copied().collect();
            best.sort_by(|a, b| b.total_cmp(a));
            gain += discounted(&found) / discounted(&best);
            recall += found.iter().filter(|g| **g > 0.0).count() as f64 / grades.len() as f64;
        }
        let mean = |sum: f64| (sum / rankings.len() as f64 * 1e4).round() / 1e4;
        (mean(recall), mean(gain))
    }

    async fn speed(&self, embedder: &dyn Embedder) -> Result<Value, Failure> {
        let documents = per_second(embedder, &self.documents).await?;
        let queries = per_second(embedder, &self.queries).await?;
        let mut times = Vec::new();
        for query in self.queries.iter().cycle().take(300) {
            let started = Instant::now();
            embedder.embed(&Context::new(), &[query]).await?;
            times.push(started.elapsed());
        }
        times.sort_unstable();
        let microseconds = (times[times.len() / 2].as_secs_f64() * 1e7).round() / 10.0;
        Ok(json!({
            "documents a second, in one batch": documents,
            "queries a second, in one batch": queries,
            "one query alone, median, in microseconds": microseconds,
        }))
    }
}

/// The best of a few rounds: what disturbs only makes slower.
async fn per_second(embedder: &dyn Embedder, texts: &[String]) -> Result<f64, Failure> {
    let mut best = Duration::MAX;
    for _ in 0..2 {
        let started = Instant::now();
        embed(embedder, texts).await?;
        best = best.min(started.elapsed());
    }
    Ok((texts.len() as f64 / best.as_secs_f64() * 10.0).round() / 10.0)
}

async fn embed(embedder: &dyn Embedder, texts: &[String]) -> Result<Vec<Vec<f32>>, Failure> {
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    Ok(embedder.embed(&Context::new(), &texts).await?)
}

/// Both rankings as one, by the sum of `1 / (60 + place)`.
fn fuse(first: &[Vec<usize>], second: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let both = |(first, second): (&Vec<usize>, &Vec<usize>)| {
        let mut scores = vec![0.0; first.len()];
        for ranking in [first, second] {
            for (document, place) in ranking.iter().zip(1_u32..) {
                scores[*document] += 1.0 / (60.0 + f64::from(place));
            }
        }
        order(&scores)
    };
    first.iter().zip(second).map(both).collect()
}

/// Indices by score, highest first; of equals the earlier.
fn order(scores: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
    order
}

fn words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

/// The texts of a file in the format of SMART: what stands under `.W` of each entry.
fn texts(file: &str) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    let mut inside = false;
    for line in file.lines() {
        if line.starts_with(".I ") {
            texts.push(String::new());
            inside = false;
        } else if line.len() == 2 && line.starts_with('.') {
            inside = line == ".W";
        } else if let Some(text) = texts.last_mut().filter(|_| inside) {
            text.push_str(line);
            text.push('\n');
        }
    }
    texts
}
