//! The embedded model as a model of core's.

mod writer;

use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::future::{BoxFuture, Either, try_join_all};
use futures_util::stream;
use sifaka_core::constraint::Constraint;
use sifaka_core::model::{
    Capabilities, Delta, DeltaStream, Part, Price, Provider, Request, Response, ResponseFormat,
    Role, TokenCount,
};

use sifaka_core::{Context, Cost, Error, ErrorKind, Model, Result, Usage};
use tokio::sync::{OnceCell, mpsc, oneshot};

use crate::engine::{Engine, Options, Sequence};
use crate::gguf::Gguf;
use crate::guide::{Free, Grammars, Guide};
use crate::llama::Shape;
use crate::sampler::{Choice, Sampler};
use crate::template::ChatTemplate;
use crate::tokenizer::{Special, TokenId, Tokenizer};
use writer::{Writer, Written};

/// The most tokens of an answer, unless the request says otherwise.
const MAX_TOKENS: u64 = 1024;
/// The most completions of one request.
const MAX_CANDIDATES: u32 = 16;

/// A GGUF model on this machine. Cloning it shares it; the weights are read when it is first asked.
///
/// It keeps JSON schemas, patterns and grammars while it writes, gives log-probabilities, and the
/// same text for the same seed, whatever else it is doing. Prompts that begin like an earlier one
/// are not read again from the start.
#[derive(Clone)]
pub struct LocalModel {
    name: Arc<str>,
    file: Arc<File>,
    guides: Option<Arc<dyn Guides>>,
}

/// A file that is open, and what was read of it.
pub(crate) struct File {
    path: PathBuf,
    gguf: Gguf,
    title: Option<String>,
    options: Options,
    context: usize,
    tokenizer: Arc<Tokenizer>,
    template: ChatTemplate,
    engine: OnceCell<Engine>,
    grammars: OnceCell<Arc<Grammars>>,
}

impl File {
    pub(crate) fn open(path: &Path, options: Options) -> Result<Self> {
        let gguf = Gguf::open(path)?;
        let context = options.context(Shape::read(&gguf)?.context)?;
        let tokenizer = Arc::new(Tokenizer::from_gguf(&gguf)?);
        let template = ChatTemplate::from_gguf(&gguf, &tokenizer)?;
        let title = gguf.str_opt("general.name")?.map(str::to_owned);
        Ok(Self {
            path: path.to_owned(),
            gguf,
            title,
            options,
            context,
            tokenizer,
            template,
            engine: OnceCell::new(),
            grammars: OnceCell::new(),
        })
    }
}

/// Makes the guide of a text from what a request asks for. With one of these a model is driven by
/// rules of any kind; without, by those that llguidance keeps.
pub trait Guides: Send + Sync {
    /// The guide of one text; `None` leaves the model free.
    ///
    /// # Errors
    /// For rules that cannot be kept.
    fn guide(
        &self,
        request: &Request,
        tokenizer: &Arc<Tokenizer>,
    ) -> Result<Option<Box<dyn Guide>>>;
}

impl LocalModel {
    /// Opens a GGUF file. Only its head is read; the weights follow with the first request.
    ///
    /// # Errors
    /// When the file cannot be read or holds a model that is not supported.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Self> {
        let path = path.as_ref();
        let file = File::open(path, options)?;
        Ok(Self::of(Arc::new(file)).named(format!("local:{}", path.display())))
    }

    /// The model in this file.
    pub(crate) fn of(file: Arc<File>) -> Self {
        Self { name: Arc::from("local"), file, guides: None }
    }

    /// The same model by another name, as it stands in records.
    #[must_use]
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Self {
        self.name = name.into();
        self
    }

    /// The same model, with these to make the guides of its texts.
    #[must_use]
    pub fn with_guides(mut self, guides: Arc<dyn Guides>) -> Self {
        self.guides = Some(guides);
        self
    }

    /// The file it is read from.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// Its tokenizer.
    #[must_use]
    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.file.tokenizer
    }

    /// The engine behind it; reads the weights if nobody has asked for anything yet.
    ///
    /// # Errors
    /// When the weights cannot be read.
    pub async fn engine(&self) -> Result<&Engine> {
        let load = || async {
            let file = Arc::clone(&self.file);
            let read =
                move || Engine::from_gguf(&file.gguf, Arc::clone(&file.tokenizer), file.options);
            aside("load", read).await
        };
        self.file.engine.get_or_try_init(load).await
    }

    /// The tokens of a request's prompt, as the model's own chat template lays them out.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] for images and tools.
    pub fn prompt_tokens(&self, request: &Request) -> Result<Vec<TokenId>> {
        let cannot = |what: &str| {
            Error::new(
                ErrorKind::Unsupported,
                &*self.name,
                "read",
                format!("the embedded model takes no {what}"),
            )
            .suggest("ask a provider's model for it")
        };
        if !request.tools.is_empty() {
            return Err(cannot("tools"));
        }
        let mut messages = Vec::with_capacity(request.messages.len());
        for message in &request.messages {
            if message.parts.iter().any(|part| !matches!(part, Part::Text(_))) {
                return Err(cannot("images or tool calls"));
            }
            let role = match message.role {
                Role::User => "user",
                Role::Assistant => "assistant",
                Role::Tool => return Err(cannot("answers of tools")),
            };
            messages.push((role, message.text()));
        }
        let messages: Vec<(&str, &str)> = messages.iter().map(|(r, text)| (*r, &**text)).collect();
        self.file.template.encode_chat(&self.file.tokenizer, &messages, request.system.as_deref())
    }

    async fn guide(&self, request: &Request) -> Result<Box<dyn Guide>> {
        if let Some(guides) = &self.guides {
            let guide = guides.guide(request, &self.file.tokenizer)?;
            return Ok(guide.unwrap_or_else(|| Box::new(Free)));
        }
        let mut rules: Vec<(Arc<str>, Constraint)> = request.constraints.to_vec();
        match &request.response_format {
            None => {}
            Some(ResponseFormat::Json) => {
                let any = serde_json::json!({"type": "object"});
                rules.push(("json".into(), Constraint::JsonSchema(Arc::new(any))));
            }
            Some(ResponseFormat::JsonSchema { name, schema }) => {
                let schema = Constraint::JsonSchema(Arc::new(schema.clone()));
                rules.push((name.as_str().into(), schema));
            }
            Some(other) => {
                let message = format!("the embedded model does not know the format {other:?}");
                return Err(Error::new(ErrorKind::Unsupported, &*self.name, "write", message));
            }
        }
        if rules.is_empty() {
            return Ok(Box::new(Free));
        }
        let prepare = || async {
            let tokenizer = Arc::clone(&self.file.tokenizer);
            aside("grammar", move || Grammars::new(&tokenizer)).await.map(Arc::new)
        };
        let grammars = Arc::clone(self.file.grammars.get_or_try_init(prepare).await?);
        let guide = aside("grammar", move || {
            grammars.guide(rules.iter().map(|(name, rule)| (&**name, rule)))
        });
        Ok(Box::new(guide.await?))
    }

    /// Writes, telling of deltas if somebody listens.
    async fn write(
        &self,
        ctx: &Context,
        request: &Request,
        deltas: Option<mpsc::Sender<Delta>>,
    ) -> Result<Response> {
        let prompt = self.prompt_tokens(request)?;
        let choice = Choice::from_sampling(&request.sampling)?;
        let window = self.file.context;
        if prompt.len() >= window {
            let asked = prompt.len();
            return Err(Error::new(
                ErrorKind::ContextTooLong,
                &*self.name,
                "read",
                format!("the prompt has {asked} tokens and the model's window {window}"),
            )
            .suggest("shorten the prompt or its context, or take a model with a larger window"));
        }
        let wish = request.sampling.max_tokens.unwrap_or(MAX_TOKENS);
        let max_tokens = usize::try_from(wish).unwrap_or(usize::MAX).min(window - prompt.len());
        let candidates = request.candidates.clamp(1, MAX_CANDIDATES);
        // Without a seed the context's own randomness gives one, so that a run can be repeated.
        let seed = request.seed.unwrap_or_else(|| ctx.random());
        let mut guides = Vec::with_capacity(candidates as usize);
        for _ in 0..candidates {
            guides.push(self.guide(request).await?);
        }
        let plan = Plan {
            prompt: prompt.clone(),
            guides,
            choice,
            seed,
            max_tokens,
            stop: request.stop.clone().into(),
            logprobs: request.logprobs.map(|top| top as usize),
            tokenizer: Arc::clone(&self.file.tokenizer),
            deltas,
        };
        let engine = self.engine().await?;
        let (texts, reused) = engine.run(move |sequence| plan.carry_out(sequence)).await?;
        let usage = Usage {
            input_tokens: prompt.len() as u64,
            cached_tokens: reused as u64,
            output_tokens: texts.iter().map(|text| text.tokens).sum(),
            ..Usage::default()
        };
        Ok(Response {
            completions: texts.into_iter().map(|text| text.completion).collect(),
            usage,
            provider: Provider { model: self.file.title.clone(), ..Provider::default() },
            raw: None,
        })
    }
}

/// All the texts of one request.
struct Plan {
    prompt: Vec<TokenId>,
    guides: Vec<Box<dyn Guide>>,
    choice: Choice,
    seed: u64,
    max_tokens: usize,
    stop: Arc<[String]>,
    logprobs: Option<usize>,
    tokenizer: Arc<Tokenizer>,
    deltas: Option<mpsc::Sender<Delta>>,
}

impl Plan {
    fn carry_out(
        self,
        mut sequence: Sequence,
    ) -> BoxFuture<'static, Result<(Vec<Written>, usize)>> {
        Box::pin(async move {
            sequence.push(&self.prompt).await?;
            let reused = sequence.reused();
            let mut sequences = vec![sequence];
            for _ in 1..self.guides.len() {
                sequences.extend(sequences.first().map(Sequence::fork));
            }
            let writers =
                (0_u32..).zip(sequences).zip(self.guides).map(|((index, sequence), guide)| {
                    Writer {
                        index,
                        sequence,
                        // Candidates differ, and the first is the one that would come alone.
                        sampler: Sampler::new(self.choice, self.seed ^ (u64::from(index) << 32)),
                        guide,
                        tokenizer: Arc::clone(&self.tokenizer),
                        stop: Arc::clone(&self.stop),
                        max_tokens: self.max_tokens,
                        logprobs: self.logprobs,
                        deltas: self.deltas.clone(),
                    }
                });
            let texts = try_join_all(writers.map(Writer::write)).await?;
            Ok((texts, reused))
        })
    }
}

/// A stream under way: first what is told, then the whole.
struct Telling<F> {
    deltas: mpsc::Receiver<Delta>,
    whole: Option<F>,
    response: Option<Response>,
}

impl<F: Future<Output = Result<Response>> + Unpin> Telling<F> {
    async fn next(&mut self) -> Option<Result<Delta>> {
        while let Some(whole) = &mut self.whole {
            match futures_util::future::select(pin!(self.deltas.recv()), whole).await {
                Either::Left((Some(delta), _)) => return Some(Ok(delta)),
                // All is told; what is left is to wait for the whole.
                Either::Left((None, whole)) => {
                    let outcome = whole.await;
                    self.whole = None;
                    return Some(outcome.map(|response| Delta::Done(Box::new(response))));
                }
                Either::Right((outcome, _)) => {
                    self.whole = None;
                    match outcome {
                        Ok(response) => self.response = Some(response),
                        Err(error) => return Some(Err(error)),
                    }
                }
            }
        }
        // The whole has come before the last of what was told.
        if self.response.is_some()
            && let Some(delta) = self.deltas.recv().await
        {
            return Some(Ok(delta));
        }
        self.response.take().map(|response| Ok(Delta::Done(Box::new(response))))
    }
}

/// Does something long on a thread of its own.
async fn aside<T: Send + 'static>(
    operation: &'static str,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let failed = |what: &str| Error::new(ErrorKind::Internal, "local", operation, what);
    let (reply, answer) = oneshot::channel();
    std::thread::Builder::new()
        .name(format!("sifaka-{operation}"))
        .spawn(move || {
            // Whoever asked may have gone; there is no one to tell.
            let _ = reply.send(work());
        })
        .map_err(|error| failed("no thread could be started").with_source(error))?;
    answer.await.map_err(|_| failed("it panicked"))?
}

#[async_trait]
impl Model for LocalModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn capabilities(&self) -> Capabilities {
        let window = self.file.context as u64;
        Capabilities {
            streaming: true,
            system_prompt: true,
            json_schema: true,
            regex: true,
            grammar: true,
            guided: self.guides.is_some(),
            logprobs: true,
            seed: true,
            max_candidates: MAX_CANDIDATES,
            context_window: Some(window),
            max_output_tokens: Some(MAX_TOKENS.min(window / 2)),
            ..Capabilities::default()
        }
    }

    async fn generate(&self, ctx: &Context, request: &Request) -> Result<Response> {
        ctx.run(self.write(ctx, request, None)).await
    }

    fn stream<'a>(&'a self, ctx: &'a Context, request: &'a Request) -> DeltaStream<'a> {
        let (sender, deltas) = mpsc::channel(64);
        let whole = Box::pin(ctx.run(self.write(ctx, request, Some(sender))));
        let telling = Telling { deltas, whole: Some(whole), response: None };
        Box::pin(stream::unfold(telling, |mut telling| async move {
            telling.next().await.map(|item| (item, telling))
        }))
    }

    fn price(&self) -> Option<Price> {
        Some(Price {
            input_per_million: Cost::ZERO,
            output_per_million: Cost::ZERO,
            cached_per_million: None,
        })
    }

    fn count_tokens(&self, text: &str) -> TokenCount {
        TokenCount::exact(self.file.tokenizer.encode(text, Special::AsText).len() as u64)
    }
}

impl fmt::Debug for LocalModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalModel")
            .field("name", &self.name)
            .field("path", &self.file.path)
            .field("context", &self.file.context)
            .finish_non_exhaustive()
    }
}
