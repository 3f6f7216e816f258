//! The chat template of a file: how a conversation becomes the text that its model was trained on.
//!
//! A template writes control tokens by their names, and a user may write the same names. The two
//! are told apart: [`ChatTemplate::encode_chat`] takes only the template's names for tokens.

use std::collections::HashSet;

use minijinja::{AutoEscape, Environment, Value, context};
use minijinja_contrib::pycompat::unknown_method_callback;
use sifaka_core::{Error, ErrorKind, Result};

use crate::gguf::Gguf;
use crate::tokenizer::{Special, TokenId, Tokenizer};

const COMPONENT: &str = "template";
const NAME: &str = "chat_template";
/// Steps that a template may take: far more than a long conversation needs, and an end to a loop
/// that has none.
const FUEL: u64 = 10_000_000;

/// For vocabularies that have its tokens and files that have no template.
const CHATML: &str = "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' \
    + message['content'] + '<|im_end|>' + '\n' }}{% endfor %}\
    {% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

/// How a conversation is written for a model.
#[derive(Debug)]
pub enum ChatTemplate {
    /// By a Jinja template: the file's own, or ChatML.
    Jinja(Box<Jinja>),
    /// As it is, for a model that was never taught to chat: it goes on with the text. System prompt
    /// and messages stand one after the other with an empty line between, and roles are not
    /// written.
    Plain,
}

/// A template that was read.
#[derive(Debug)]
pub struct Jinja {
    environment: Environment<'static>,
    source: String,
    bos: String,
    eos: String,
}

impl ChatTemplate {
    /// The template of a file. A file without one gets ChatML if its vocabulary has the tokens for
    /// it, and [`Plain`](Self::Plain) if not.
    ///
    /// # Errors
    /// The template is malformed or uses what is not understood here.
    pub fn from_gguf(gguf: &Gguf, tokenizer: &Tokenizer) -> Result<Self> {
        if let Some(source) = gguf.str_opt("tokenizer.chat_template")? {
            return Self::new(source, tokenizer);
        }
        let chatml = ["<|im_start|>", "<|im_end|>"];
        if chatml.iter().all(|name| tokenizer.control(name).is_some()) {
            return Self::new(CHATML, tokenizer);
        }
        Ok(Self::Plain)
    }

    /// A template of the caller's.
    ///
    /// # Errors
    /// It is malformed.
    pub fn new(source: &str, tokenizer: &Tokenizer) -> Result<Self> {
        let mut environment = Environment::new();
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_unknown_method_callback(unknown_method_callback);
        environment.set_fuel(Some(FUEL));
        environment.add_function("raise_exception", raise_exception);
        // As the templates' makers have it.
        let syntax =
            environment.syntax().to_builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.map_err(|error| malformed(&error))?);
        environment
            .add_template_owned(NAME, source.to_owned())
            .map_err(|error| malformed(&error))?;
        let name = |id: Option<TokenId>| {
            let name = id.map(|id| tokenizer.bytes(id)).unwrap_or_default();
            String::from_utf8_lossy(name).into_owned()
        };
        Ok(Self::Jinja(Box::new(Jinja {
            environment,
            source: source.to_owned(),
            bos: name(tokenizer.bos()),
            eos: name(tokenizer.eos()),
        })))
    }

    /// The text of a conversation of roles and contents. Of what the template adds of its own, such
    /// as a system prompt where none is given, nothing is taken away.
    ///
    /// With `add_generation_prompt` it ends where the model's answer begins. To get tokens, use
    /// [`encode_chat`](Self::encode_chat): in this text nobody can tell the template's control
    /// tokens from names that a user wrote.
    ///
    /// # Errors
    /// There is nothing to write, a role is not a word, or the template refuses the conversation.
    pub fn render(
        &self,
        messages: &[(&str, &str)],
        system: Option<&str>,
        add_generation_prompt: bool,
    ) -> Result<String> {
        let system = system.map(|system| ("system", system));
        let all: Vec<_> = system.iter().chain(messages).copied().collect();
        check(&all)?;
        match self {
            Self::Jinja(jinja) => jinja.render(&all, add_generation_prompt),
            Self::Plain => Ok(plain(&all)),
        }
    }

    /// The tokens of a conversation up to where the model's answer begins, with the token for the
    /// beginning if the file asks for one.
    ///
    /// Contents are text: a control token's name in them is spelt, and has no effect.
    ///
    /// # Errors
    /// As [`render`](Self::render).
    pub fn encode_chat(
        &self,
        tokenizer: &Tokenizer,
        messages: &[(&str, &str)],
        system: Option<&str>,
    ) -> Result<Vec<TokenId>> {
        let system = system.map(|system| ("system", system));
        let all: Vec<_> = system.iter().chain(messages).copied().collect();
        check(&all)?;
        let mut ids = match self {
            Self::Jinja(jinja) => {
                let mark = mark(&all, &jinja.source, tokenizer)?;
                let marked: Vec<_> = all
                    .iter()
                    .map(|(role, content)| (*role, with_marks(content, mark, tokenizer)))
                    .collect();
                let marked: Vec<_> = marked.iter().map(|(role, text)| (*role, &**text)).collect();
                tokenizer.encode_marked(&jinja.render(&marked, true)?, mark)
            }
            Self::Plain => tokenizer.encode(&plain(&all), Special::AsText),
        };
        tokenizer.add_bos(&mut ids);
        Ok(ids)
    }
}

impl Jinja {
    /// The template as it was given.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.source
    }

    fn render(&self, messages: &[(&str, &str)], add_generation_prompt: bool) -> Result<String> {
        let messages: Vec<Value> = messages
            .iter()
            .map(|(role, content)| context! { role => *role, content => *content })
            .collect();
        let template = self.environment.get_template(NAME).map_err(|error| malformed(&error))?;
        let context = context! {
            messages,
            add_generation_prompt,
            bos_token => self.bos.as_str(),
            eos_token => self.eos.as_str(),
        };
        template.render(context).map_err(|error| {
            let message = format!("the chat template refuses this conversation: {}", text(&error));
            Error::new(ErrorKind::InvalidInput, COMPONENT, "render", message)
                .suggest("give the messages as the model's card shows them: some models take no system prompt, or want user and assistant in turn")
                .with_source(error)
        })
    }
}

/// Roles stand in the text as they are, so they must not hold anything but a word.
fn check(messages: &[(&str, &str)]) -> Result<()> {
    if messages.is_empty() {
        return Err(Error::invalid_input(COMPONENT, "a conversation without messages")
            .suggest("give at least one message"));
    }
    let word =
        |role: &str| !role.is_empty() && role.bytes().all(|byte| byte.is_ascii_alphanumeric());
    match messages.iter().find(|(role, _)| !word(role)) {
        None => Ok(()),
        Some((role, _)) => {
            Err(Error::invalid_input(COMPONENT, format!("a message of the role {role:?}"))
                .suggest("use system, user or assistant"))
        }
    }
}

fn plain(messages: &[(&str, &str)]) -> String {
    messages.iter().map(|(_, content)| *content).collect::<Vec<_>>().join("\n\n")
}

/// A character for marks: one that is in no text here. There are 130,000 that never mean anything
/// to anybody else.
fn mark(messages: &[(&str, &str)], template: &str, tokenizer: &Tokenizer) -> Result<char> {
    let unused = |c: &char| matches!(c, '\u{fdd0}'..='\u{fdef}' | '\u{f0000}'..='\u{10fffd}');
    let texts = messages.iter().map(|(_, content)| *content).chain([template]);
    let taken: HashSet<char> = texts.flat_map(str::chars).filter(unused).collect();
    let mut free = ('\u{fdd0}'..='\u{fdef}').chain('\u{f0000}'..='\u{10fffd}');
    free.find(|c| !taken.contains(c) && !tokenizer.is_in_a_name(*c)).ok_or_else(|| {
        Error::invalid_input(COMPONENT, "the messages hold every private character there is")
            .suggest("leave some of the characters from U+F0000 on out of the messages")
    })
}

/// The content with a mark wherever a control token would begin. Almost always that is nowhere, so
/// that the template sees what the user wrote and can trim and compare it.
fn with_marks(content: &str, mark: char, tokenizer: &Tokenizer) -> String {
    let mut marked = String::with_capacity(content.len());
    let mut start = 0;
    for at in tokenizer.openings(content) {
        marked.push_str(&content[start..at]);
        marked.push(mark);
        start = at;
    }
    marked.push_str(&content[start..]);
    marked
}

fn raise_exception(message: String) -> Result<Value, minijinja::Error> {
    Err(minijinja::Error::new(minijinja::ErrorKind::InvalidOperation, message))
}

fn malformed(error: &minijinja::Error) -> Error {
    let message = format!("the chat template cannot be read: {}", text(error));
    Error::new(ErrorKind::Unsupported, COMPONENT, "open", message)
        .suggest("use another file of the model: this one's template is damaged or too new")
}

fn text(error: &minijinja::Error) -> String {
    let what = error.detail().map_or_else(|| error.to_string(), str::to_owned);
    match error.line() {
        Some(line) => format!("{what} (line {line} of it)"),
        None => what,
    }
}

#[cfg(test)]
mod tests;
