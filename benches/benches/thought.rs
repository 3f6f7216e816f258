//! Thoughts: the next iteration at any depth, and JSON out and in.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot run may panic")]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use sifaka_benches::sample_thought;
use sifaka_core::thought::Limits;
use sifaka_core::{Context, Thought};

fn next_iteration(c: &mut Criterion) {
    let ctx = Context::new();
    let mut group = c.benchmark_group("next_iteration at depth");
    for depth in [10, 1_000, 100_000] {
        let mut thought = Thought::new(&ctx, "p").with_text("text");
        for _ in 0..depth {
            thought = thought.next_iteration(&ctx).with_text("text");
        }
        group.bench_function(depth.to_string(), |b| b.iter(|| thought.next_iteration(&ctx)));
    }
    group.finish();
}

fn json(c: &mut Criterion) {
    let ctx = Context::new();
    let thought = sample_thought(&ctx, 10);
    let bytes = serde_json::to_vec(&thought).unwrap();
    let mut group = c.benchmark_group("JSON of 10 iterations");
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    let mut buffer = Vec::with_capacity(bytes.len() * 2);
    group.bench_function("out", |b| {
        b.iter(|| {
            buffer.clear();
            serde_json::to_writer(&mut buffer, black_box(&thought)).unwrap();
        });
    });
    group.bench_function("in", |b| {
        b.iter(|| Thought::from_json(black_box(&bytes), &Limits::default()).unwrap());
    });
    group.finish();
}

criterion_group!(benches, next_iteration, json);
criterion_main!(benches);
