//! JSON schemas, patterns and grammars, kept by llguidance.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{SimpleVob, TokEnv, TokRxInfo, TokTrie, TokenizerEnv};
use llguidance::{Matcher, ParserFactory, regex_to_lark};
use serde_json::{Value, json};
use sifaka_core::constraint::Constraint;
use sifaka_core::{Error, ErrorKind, Result};

use super::shortest::Shortest;
use super::{Draft, Guide, Guided, Move};
use crate::tokenizer::{Special, TokenId, Tokenizer};

/// Compiles grammars for one vocabulary.
pub struct Grammars {
    factory: ParserFactory,
    tokenizer: Arc<Tokenizer>,
}

struct Vocabulary {
    tokenizer: Arc<Tokenizer>,
    trie: TokTrie,
}

impl TokenizerEnv for Vocabulary {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        self.trie.tokenize_with_greedy_fallback(bytes, |text| {
            self.tokenizer.encode(text, Special::AsText)
        })
    }
}

impl Grammars {
    /// Prepares a vocabulary; this takes some tens of milliseconds.
    ///
    /// # Errors
    /// When the vocabulary has no token to end a text with, or cannot be used.
    pub fn new(tokenizer: &Arc<Tokenizer>) -> Result<Self> {
        let wrong = |what: String| Error::new(ErrorKind::Unsupported, "local", "grammar", what);
        let mut ends = tokenizer.ends();
        let end =
            ends.next().ok_or_else(|| wrong("the model has no token to end a text with".into()))?;
        let words: Vec<Vec<u8>> = tokenizer
            .vocabulary()
            .map(|(id, bytes)| {
                // Control tokens are no text, whatever their names spell.
                let mark = tokenizer.is_control(id).then_some(TokTrie::SPECIAL_TOKEN_MARKER);
                mark.into_iter().chain(bytes.iter().copied()).collect()
            })
            .collect();
        let size = u32::try_from(words.len()).unwrap_or(u32::MAX);
        let trie = TokTrie::from(&TokRxInfo::new(size, end), &words);
        let vocabulary: TokEnv = Arc::new(Vocabulary { tokenizer: Arc::clone(tokenizer), trie });
        let mut factory = ParserFactory::new_simple(&vocabulary)
            .map_err(|error| wrong(format!("grammars cannot be used with this model: {error}")))?;
        factory.quiet();
        Ok(Self { factory, tokenizer: Arc::clone(tokenizer) })
    }

    /// A guide that keeps all of these at once. Kinds that need more than a grammar are refused.
    ///
    /// # Errors
    /// [`ErrorKind::Configuration`] for one that cannot be read, with its own words, and
    /// [`ErrorKind::Unsupported`] for a kind that is not kept here.
    pub fn guide<'c>(
        &self,
        constraints: impl IntoIterator<Item = (&'c str, &'c Constraint)>,
    ) -> Result<GrammarGuide> {
        let mut rules = Vec::new();
        // Patterns are joined into one, since what each allows next does not say whether all can be
        // brought to an end together.
        let mut patterns: Vec<(&str, String)> = Vec::new();
        for (name, constraint) in constraints {
            match pattern(constraint) {
                Some(pattern) => patterns.push((name, pattern)),
                None => rules.push(self.rule(name, grammar(name, constraint)?)?),
            }
        }
        let mut shortest = None;
        if let [(_, pattern)] = patterns.as_slice() {
            shortest = Shortest::new(pattern);
        }
        if !patterns.is_empty() {
            let names: Vec<&str> = patterns.iter().map(|(name, _)| *name).collect();
            let all: Vec<String> = patterns
                .iter()
                .map(|(_, pattern)| format!("/{}/", regex_to_lark(pattern, "")))
                .collect();
            let lark = format!("start: TEXT\nTEXT: {}", all.join(" & "));
            rules.push(self.rule(&names.join(", "), TopLevelGrammar::from_lark(lark))?);
        }
        let tokenizer = Arc::clone(&self.tokenizer);
        Ok(GrammarGuide {
            rules,
            tokenizer,
            shortest,
            length: 0,
            did: Guided::default(),
            from: None,
        })
    }

    fn rule(&self, name: &str, grammar: TopLevelGrammar) -> Result<Rule> {
        let mut matcher = Matcher::new(self.factory.create_parser(grammar));
        if let Some(error) = matcher.get_error() {
            return Err(unreadable(name, &error));
        }
        let first = matcher.compute_mask().map_err(|error| unreadable(name, &error.to_string()))?;
        if first.num_set() == 0 && !matcher.is_accepting().unwrap_or(false) {
            return Err(unreadable(name, "no text at all satisfies it"));
        }
        Ok(Rule { name: Arc::from(name), matcher })
    }
}

/// The pattern that a rule amounts to, if it does to one.
fn pattern(constraint: &Constraint) -> Option<String> {
    match constraint {
        Constraint::Regex(pattern) => Some(unanchored(pattern).to_owned()),
        Constraint::Choice(choices) => {
            let choices: Vec<String> = choices.iter().map(|c| escape(c)).collect();
            Some(choices.join("|"))
        }
        _ => None,
    }
}

impl fmt::Debug for Grammars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grammars").finish_non_exhaustive()
    }
}

fn unreadable(name: &str, error: &str) -> Error {
    Error::configuration(format!("check {name}"), format!("its rule cannot be used: {error}"))
        .suggest("mend the schema, pattern or grammar, or turn guiding off")
}

fn grammar(name: &str, constraint: &Constraint) -> Result<TopLevelGrammar> {
    Ok(match constraint {
        Constraint::JsonSchema(schema) => TopLevelGrammar::from_json_schema(compact(schema)),
        Constraint::Grammar { syntax, text } if &**syntax == "lark" => {
            TopLevelGrammar::from_lark(text.to_string())
        }
        other => {
            let kind = match other {
                Constraint::Grammar { syntax, .. } => format!("a grammar in {syntax}"),
                other => format!("{other:?}"),
            };
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!("check {name}"),
                "guide",
                format!("the embedded model cannot be guided by {kind}"),
            )
            .suggest("guided are JSON schemas, patterns, choices and grammars in lark"));
        }
    })
}

/// A schema whose JSON has one space after commas and colons and no more: what models write, and no
/// room to write spaces without end.
fn compact(schema: &Value) -> Value {
    let mut schema = schema.clone();
    let layout =
        json!({"whitespace_flexible": false, "item_separator": ", ", "key_separator": ": "});
    match &mut schema {
        Value::Object(fields) => {
            fields.entry("x-guidance").or_insert(layout);
            schema
        }
        Value::Bool(true) => json!({"x-guidance": layout}),
        other => other.clone(),
    }
}

/// The pattern without anchors at its ends: the whole text must match it anyway.
fn unanchored(pattern: &str) -> &str {
    let pattern =
        pattern.strip_prefix('^').or_else(|| pattern.strip_prefix(r"\A")).unwrap_or(pattern);
    let end = pattern.strip_suffix('$').or_else(|| pattern.strip_suffix(r"\z"));
    match end {
        // An escaped sign is no anchor.
        Some(inner) if (inner.len() - inner.trim_end_matches('\\').len()).is_multiple_of(2) => {
            inner
        }
        _ => pattern,
    }
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if c.is_ascii_punctuation() {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

struct Rule {
    name: Arc<str>,
    matcher: Matcher,
}

/// Keeps a text to some grammars, all at once.
pub struct GrammarGuide {
    rules: Vec<Rule>,
    tokenizer: Arc<Tokenizer>,
    /// The way to the end of the one pattern there is, if it can be told.
    shortest: Option<Shortest>,
    /// How many tokens the rules have seen.
    length: usize,
    did: Guided,
    /// The room there was at the beginning.
    from: Option<usize>,
}

impl fmt::Debug for GrammarGuide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules: Vec<&str> = self.rules.iter().map(|rule| &*rule.name).collect();
        f.debug_struct("GrammarGuide").field("rules", &rules).finish_non_exhaustive()
    }
}

/// With fewer tokens left than this, or than a part of all, the text is brought to its end.
const LANDING: usize = 64;

impl GrammarGuide {
    fn broken(name: &str, error: &dyn fmt::Display) -> Error {
        Error::new(
            ErrorKind::Internal,
            format!("check {name}"),
            "guide",
            format!("the rule could not be followed any further: {error}"),
        )
        .suggest("see whether the checks contradict each other")
    }

    fn may_end(&mut self) -> Result<bool> {
        let mut may = true;
        for rule in &mut self.rules {
            let done = rule.matcher.is_stopped() || {
                rule.matcher.is_accepting().map_err(|e| Self::broken(&rule.name, &e))?
            };
            may &= done;
        }
        Ok(may)
    }

    fn allows(&mut self, token: TokenId) -> Result<bool> {
        for rule in &mut self.rules {
            let fits = rule.matcher.validate_tokens(&[token]);
            if fits.map_err(|e| Self::broken(&rule.name, &e))? == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What all rules allow.
    fn mask(&mut self) -> Result<Option<SimpleVob>> {
        let mut all: Option<SimpleVob> = None;
        for rule in &mut self.rules {
            if rule.matcher.is_stopped() {
                continue;
            }
            let mask = rule.matcher.compute_mask().map_err(|e| Self::broken(&rule.name, &e))?;
            match &mut all {
                None => all = Some(mask),
                Some(all) => all.and(&mask),
            }
        }
        Ok(all)
    }

    /// Tokens that can be nothing else, if there is but one rule to ask.
    fn forced(&mut self) -> Vec<TokenId> {
        match self.rules.as_mut_slice() {
            [rule] => rule.matcher.compute_ff_tokens(),
            _ => Vec::new(),
        }
    }

    /// The token that brings the text nearest to its end: one after which it may end, one that
    /// closes something, one that leads on, or whatever the model likes best.
    fn landing(&mut self, draft: &mut Draft<'_>, mask: &SimpleVob) -> Result<Option<TokenId>> {
        let mut best: Option<(u32, f32, TokenId)> = None;
        for token in mask.iter() {
            let bytes = draft.tokenizer().bytes(token);
            // Single bytes are enough to get anywhere, and few enough to try.
            let [byte] = *bytes else { continue };
            if draft.tokenizer().is_control(token) {
                continue;
            }
            let rank = match &self.shortest {
                Some(way) => u32::MAX - way.distance_after(&[byte]).unwrap_or(u32::MAX),
                None => match self.after(token, mask)? {
                    After::End => 3,
                    After::Elsewhere if matches!(byte, b'"' | b'}' | b']') => 2,
                    After::Elsewhere => 1,
                    After::Same => 0,
                },
            };
            let score = draft.scores().get(token as usize).copied().unwrap_or_default();
            if best.is_none_or(|(r, s, _)| (rank, score) > (r, s)) {
                best = Some((rank, score, token));
            }
        }
        Ok(best.map(|(_, _, token)| token))
    }

    /// Where a token leads to.
    fn after(&mut self, token: TokenId, mask: &SimpleVob) -> Result<After> {
        for rule in &mut self.rules {
            rule.matcher.consume_token(token).map_err(|e| Self::broken(&rule.name, &e))?;
        }
        let after = if self.may_end()? {
            After::End
        } else if self.mask()?.is_some_and(|then| then.as_slice() != mask.as_slice()) {
            After::Elsewhere
        } else {
            After::Same
        };
        for rule in &mut self.rules {
            rule.matcher.rollback(1).map_err(|e| Self::broken(&rule.name, &e))?;
        }
        Ok(after)
    }
}

enum After {
    End,
    Elsewhere,
    Same,
}

#[async_trait]
impl Guide for GrammarGuide {
    async fn next(&mut self, draft: &mut Draft<'_>) -> Result<Move> {
        // A rule that has stopped takes nothing more.
        if let Some(rule) = self.rules.iter().find(|rule| rule.matcher.is_stopped()) {
            let name = Arc::clone(&rule.name);
            return if self.may_end()? {
                Ok(Move::End)
            } else {
                Err(Self::broken(&name, &"it wants the text to end, and another does not"))
            };
        }
        let from = *self.from.get_or_insert(draft.room());
        let far = self.shortest.as_ref().and_then(Shortest::distance).unwrap_or_default() as usize;
        let landing = draft.room() < (LANDING + far).min(from / 2).max(from / 3).max(far + 2);
        if landing && self.may_end()? {
            return Ok(Move::End);
        }
        let forced = self.forced();
        if !forced.is_empty() {
            self.did.forced += forced.len() as u64;
            return Ok(Move::Force(forced));
        }
        if !landing {
            // Most of what the model likes is allowed; only when it is not, all that is allowed has
            // to be found out.
            match draft.choose() {
                Some(token) if draft.tokenizer().is_end(token) && self.may_end()? => {
                    return Ok(Move::End);
                }
                Some(token) if self.allows(token)? => return Ok(Move::Take(token)),
                _ => {}
            }
            self.did.refused += 1;
        }
        let Some(mask) = self.mask()? else { return Ok(Move::End) };
        if landing && let Some(token) = self.landing(draft, &mask)? {
            self.did.forced += 1;
            return Ok(Move::Take(token));
        }
        let may_end = self.may_end()?;
        let tokenizer = Arc::clone(draft.tokenizer());
        draft.allow_only(|token| match tokenizer.is_control(token) {
            true => may_end && tokenizer.is_end(token),
            false => mask.is_allowed(token),
        });
        match draft.choose() {
            Some(token) if tokenizer.is_end(token) => Ok(Move::End),
            Some(token) => Ok(Move::Take(token)),
            None if may_end => Ok(Move::End),
            None => Err(Self::broken(
                &self.rules.iter().map(|rule| &*rule.name).collect::<Vec<_>>().join(", "),
                &"nothing may come next",
            )),
        }
    }

    fn took(&mut self, tokens: &[TokenId]) -> Result<()> {
        for rule in &mut self.rules {
            rule.matcher.consume_tokens(tokens).map_err(|e| Self::broken(&rule.name, &e))?;
        }
        if let Some(way) = &mut self.shortest {
            for token in tokens {
                way.took(self.tokenizer.bytes(*token));
            }
        }
        self.length += tokens.len();
        Ok(())
    }

    fn rewound(&mut self, length: usize) -> Result<()> {
        let back = self.length.saturating_sub(length);
        for rule in &mut self.rules {
            rule.matcher.rollback(back).map_err(|e| Self::broken(&rule.name, &e))?;
        }
        if let Some(way) = &mut self.shortest {
            way.rewind(length);
        }
        self.length = length;
        Ok(())
    }

    fn report(&self) -> Option<Guided> {
        Some(self.did.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_at_the_ends_are_not_needed_and_escaped_ones_are_none() {
        assert_eq!(unanchored("^a+$"), "a+");
        assert_eq!(unanchored(r"\Aa\z"), "a");
        assert_eq!(unanchored(r"cost: \$"), r"cost: \$");
        assert_eq!(unanchored(r"back\\$"), r"back\\");
    }
}
