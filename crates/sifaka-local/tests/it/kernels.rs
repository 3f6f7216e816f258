//! Every instruction set gives the same bits.

use sifaka_local::Isa;
use sifaka_local::engine::{Engine, Options};
use sifaka_local::gguf::TensorKind;

use crate::common::copy_in;

#[tokio::test]
async fn all_instruction_sets_agree_to_the_last_bit() {
    for kind in [TensorKind::Q4_1, TensorKind::Q8_0, TensorKind::Q4_0, TensorKind::F16] {
        let Some(path) = copy_in(kind) else { return };
        let mut seen: Option<(Isa, Vec<u32>)> = None;
        for isa in Isa::available() {
            let mut options = Options::default();
            options.isa = Some(isa);
            let engine = Engine::load(&path, options).unwrap();
            assert_eq!(engine.isa(), isa);
            let scores: Vec<u32> = engine
                .run(|mut sequence| async move {
                    // More than a page, in tiles of every size, and then one by one.
                    sequence.push(&(500..523).collect::<Vec<_>>()).await?;
                    sequence.push(&[77]).await?;
                    sequence.push(&[78, 79]).await?;
                    Ok(sequence.scores().iter().map(|score| score.to_bits()).collect())
                })
                .await
                .unwrap();
            match &seen {
                None => seen = Some((isa, scores)),
                Some((first, expected)) => {
                    assert!(
                        scores == *expected,
                        "{} and {} differ on {kind}",
                        isa.name(),
                        first.name()
                    );
                }
            }
        }
    }
}
