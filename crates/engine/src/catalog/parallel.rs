//! Over how many GPUs a layer can be shared.

use super::{Attention, ModelShape};

impl ModelShape {
    /// Why vLLM refuses this `--tensor-parallel-size`; absent where it takes it.
    ///
    /// The rules of vLLM 0.27.1: query heads are shared out evenly (`ModelConfig.verify_with_parallel_config`); KV
    /// heads are shared out evenly where there are as many as GPUs, else copied as often on each (the models'
    /// attention layers); the FFN's width is shared out evenly (`divide` of the parallel linear layers), in whole
    /// groups or blocks of a quantised format.
    pub fn refuses_tensor_parallel(&self, size: u32) -> Option<String> {
        let heads = self.attention.heads();
        if size == 0 || !heads.is_multiple_of(size) {
            return Some(format!("the {heads} query heads of the model must be divisible by it"));
        }
        if let Attention::Grouped { kv_heads, .. } = self.attention
            && !kv_heads.is_multiple_of(size)
            && !size.is_multiple_of(kv_heads)
        {
            return Some(format!(
                "the {kv_heads} KV heads of the model can be neither shared out nor copied evenly"
            ));
        }
        let widths = [Some(self.intermediate), self.experts.map(|experts| experts.intermediate)];
        widths.into_iter().flatten().find_map(|width| self.refuses_width(width, u64::from(size)))
    }

    fn refuses_width(&self, width: u64, size: u64) -> Option<String> {
        if !width.is_multiple_of(size) {
            return Some(format!("the width {width} of the feed-forward layers must be divisible by it"));
        }
        let group = self.quantization.as_ref().and_then(|quantization| quantization.group)?;
        let share = width / size;
        (size > 1 && !share.is_multiple_of(u64::from(group))).then(|| {
            format!(
                "it leaves {share} of the width {width} of the feed-forward layers on each GPU, which is not in whole \
                 groups of the {group} quantised weights that share a scale"
            )
        })
    }

    /// All sizes that vLLM takes, rising.
    pub fn tensor_parallel_sizes(&self) -> Vec<u32> {
        (1..=self.attention.heads()).filter(|size| self.refuses_tensor_parallel(*size).is_none()).collect()
    }
}
