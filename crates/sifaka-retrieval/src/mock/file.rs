//! Documents in files.

use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use sifaka_core::{Document, Error, Position, Result};
use sifaka_models::script;

const COMPONENT: &str = "retriever mock";

/// A document in JSON: whole, or its text alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum Entry {
    Text(String),
    Document(Box<Document>),
}

/// The documents of a file.
pub(super) fn read(path: &Path) -> Result<Vec<Document>> {
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    let problem = |message: String| {
        Error::configuration(COMPONENT, format!("{}: {message}", path.display()))
            .suggest("mend the file: each document is a text, or an object with a text")
    };
    let source: Arc<str> = Arc::from(path.display().to_string());
    let documents = match extension.as_str() {
        "jsonl" => {
            let text = script::read(path, COMPONENT)?;
            whole(script::json_lines(&text).map_err(problem)?)
        }
        "json" => {
            let text = script::read(path, COMPONENT)?;
            whole(serde_json::from_str(&text).map_err(|error| problem(error.to_string()))?)
        }
        "txt" | "md" => paragraphs(&script::read(path, COMPONENT)?),
        _ => {
            let message = format!("{} is not a file of documents", path.display());
            return Err(Error::configuration(COMPONENT, message)
                .suggest("documents are in files ending in .jsonl, .json, .txt or .md"));
        }
    };
    if documents.is_empty() {
        return Err(problem("there are no documents in it".to_owned()));
    }
    if let Some(empty) = documents.iter().position(|document| document.text.is_empty()) {
        return Err(problem(format!("document {} has no text", empty + 1)));
    }
    Ok(documents
        .into_iter()
        .map(|mut document| {
            document.source.get_or_insert_with(|| Arc::clone(&source));
            document
        })
        .collect())
}

fn whole(entries: Vec<Entry>) -> Vec<Document> {
    entries
        .into_iter()
        .map(|entry| match entry {
            Entry::Text(text) => Document::new(text),
            Entry::Document(document) => *document,
        })
        .collect()
}

/// One document for each paragraph, with its place.
fn paragraphs(text: &str) -> Vec<Document> {
    let mut documents = Vec::new();
    let (mut start, mut end) = (0, 0);
    let mut at = 0;
    let mut close = |start: usize, end: usize| {
        let paragraph = text[start..end].trim_end();
        if !paragraph.is_empty() {
            let position = Position {
                chunk: u32::try_from(documents.len()).unwrap_or(u32::MAX),
                start: start as u64,
                end: (start + paragraph.len()) as u64,
            };
            let mut document = Document::new(paragraph);
            document.position = Some(position);
            documents.push(document);
        }
    };
    for line in text.split_inclusive('\n') {
        let next = at + line.len();
        if line.trim().is_empty() {
            close(start, end);
            (start, end) = (next, next);
        } else {
            end = next;
        }
        at = next;
    }
    close(start, end);
    documents
}
