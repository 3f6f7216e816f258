//! Retrieval, before and after writing.

use std::sync::Arc;

use sifaka_core::event::{EventKind, Nanos, Step};
use sifaka_core::retriever::Stage;
use sifaka_core::{Body, Document, Failure, Result};

use super::Runner;
use super::wave::{Wave, contain, ends_the_run};

impl Runner<'_> {
    /// Asks the retrievers of a stage that have not answered yet. One that fails is put on record
    /// and left out.
    pub(super) async fn retrieve(&mut self, stage: Stage) -> Result<()> {
        let parts = self.parts;
        let options = &parts.options;
        let (retrievers, guards) = match stage {
            Stage::PreGeneration => (&parts.model_retrievers, &parts.retriever_guards[0]),
            Stage::PostGeneration => (&parts.critic_retrievers, &parts.retriever_guards[1]),
        };
        if retrievers.is_empty() || options.retrieve_limit == 0 {
            return Ok(());
        }
        let Some(thought) = self.fold.thought().cloned() else { return Ok(()) };
        let round = self.fold.round();
        if stage == Stage::PreGeneration
            && (!options.use_retrieval_for_generation
                || !round.completions.is_empty()
                || (thought.iteration() > 0 && !options.retrieve_every_iteration))
        {
            return Ok(());
        }
        let mut wave = Wave::new();
        for ((index, retriever), guard) in (0_u32..).zip(retrievers).zip(guards) {
            if round.done.contains(&Step::Retriever(stage, index)) {
                continue;
            }
            let ctx = self.ctx.for_component(retriever.name());
            let thought = &thought;
            wave.push(async move {
                let started = ctx.monotonic();
                let found = guard.call(&ctx, |ctx| async move {
                    contain(
                        ctx,
                        retriever.retrieve_for_thought(ctx, thought, stage, options.retrieve_limit),
                    )
                    .await
                });
                let found = found.await;
                (index, found, Nanos::from(ctx.monotonic().saturating_sub(started)))
            });
        }
        let mut answers = Vec::new();
        while let Some(ready) = self.ready(&mut wave).await? {
            answers.extend(ready);
        }
        drop(wave);
        answers.sort_by_key(|(index, ..)| *index);
        let mut seen: Vec<Arc<str>> = Vec::new();
        if self.fold.round().has_retrieved(stage) {
            let found = match stage {
                Stage::PreGeneration => thought.pre_generation_context(),
                Stage::PostGeneration => thought.post_generation_context(),
            };
            for document in found {
                is_new(document, &mut seen);
            }
        }
        for (index, found, seconds) in answers {
            let Some(retriever) = retrievers.get(index as usize) else { continue };
            match found {
                Ok(mut documents) => {
                    documents.retain(|document| is_new(document, &mut seen));
                    let query = Body::from(retriever.query_for(&thought, stage));
                    let retriever = Arc::from(retriever.name());
                    let kind =
                        EventKind::Retrieved { stage, index, retriever, query, documents, seconds };
                    self.emit(kind).await?;
                }
                Err(error) if ends_the_run(&error) => return Err(error),
                Err(error) => {
                    let step = Step::Retriever(stage, index);
                    let failure = Failure::from(&error.in_component(retriever.name()));
                    self.emit(EventKind::Failed { step, failure, seconds }).await?;
                }
            }
        }
        Ok(())
    }
}

/// Whether no retriever before found the same text.
fn is_new(document: &Document, seen: &mut Vec<Arc<str>>) -> bool {
    let Body::Text(text) = &document.text else { return true };
    if seen.iter().any(|other| other == text) {
        return false;
    }
    seen.push(Arc::clone(text));
    true
}
