//! CUDA graph sizes, as two servers logged them.

use crate::step::{decodes, request, shape};
use precipice_engine::cost::{GraphSizes, Launch};

#[test]
fn sizes_of_the_h200_server() {
    // `cudagraph_capture_sizes` of the log, and its progress bars: 35 piecewise, 19 full.
    let sizes = GraphSizes::new(128, 2048);
    let mut logged = vec![1, 2, 4];
    logged.extend((8..=256).step_by(8));
    assert_eq!(sizes.piecewise(), logged);
    assert_eq!((sizes.piecewise().len(), sizes.full().len()), (35, 19));
}

#[test]
fn sizes_of_the_rtx_4090_server() {
    // resolved_config of LLMServingSim's meta.json, 256 sequences.
    let sizes = GraphSizes::new(256, 2048);
    let mut logged = vec![1, 2, 4];
    logged.extend((8..256).step_by(8));
    logged.extend((256..=512).step_by(16));
    assert_eq!(sizes.piecewise(), logged);
    assert_eq!(GraphSizes::new(1024, 8192).piecewise(), logged, "512 is the largest");
}

#[test]
fn a_limit_between_two_sizes_leaves_its_last_batches_without_a_full_graph() {
    let sizes = GraphSizes::new(14, 2048);
    assert_eq!(sizes.full(), [1, 2, 4, 8]);
    let batch = |sequences| sizes.launch(&shape(&decodes(sequences, 100)));
    assert_eq!(batch(8), Launch::Full(8));
    assert_eq!(batch(9), Launch::Piecewise(16));
    assert_eq!(batch(14), Launch::Piecewise(16));
    assert_eq!(GraphSizes::new(16, 2048).launch(&shape(&decodes(14, 100))), Launch::Full(16));
}

#[test]
fn mixed_batches_have_no_full_graph() {
    let sizes = GraphSizes::new(128, 2048);
    let mixed = [request(1, 500), request(20, 0)];
    assert_eq!(sizes.launch(&shape(&mixed)), Launch::Piecewise(24));
    assert_eq!(sizes.launch(&shape(&[request(257, 0)])), Launch::Eager(257));
    assert_eq!(GraphSizes::none().launch(&shape(&mixed)), Launch::Eager(21));
}
