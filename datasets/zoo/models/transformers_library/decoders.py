"""Language models that read from left to right: dense ones, mixtures of experts, recurrent and mixed ones."""

from __future__ import annotations

from .architecture import infer, offer, train
from .rows import depths, words

LAYERS = "num_hidden_layers"

DENSE = (
    words(
        "gpt-neox",
        "GPTNeoXForCausalLM",
        'Black et al. 2022, "GPT-NeoX-20B: an open-source autoregressive language model": attention and feed-forward '
        "in parallel, rotary positions on a quarter of each head.",
        depths(LAYERS, train=(4, 12), infer=(8,)),
        vocabulary=50432,
    ),
    words(
        "gpt-j",
        "GPTJForCausalLM",
        'Wang and Komatsuzaki 2021, "GPT-J-6B: a 6 billion parameter autoregressive language model".',
        depths("n_layer", train=(4, 10), infer=(6,)),
        vocabulary=50400,
    ),
    words(
        "gpt-neo",
        "GPTNeoForCausalLM",
        'Black et al. 2021, "GPT-Neo: large scale autoregressive language modeling with Mesh-TensorFlow": global and '
        "local attention in turn.",
        (
            train("4l", num_layers=4, attention_types=[[["global", "local"], 2]]),
            train("12l", num_layers=12, attention_types=[[["global", "local"], 6]]),
            infer("24l", num_layers=24, attention_types=[[["global", "local"], 12]]),
        ),
        vocabulary=50257,
    ),
    words(
        "bloom",
        "BloomForCausalLM",
        'BigScience 2022, "BLOOM: a 176B-parameter open-access multilingual language model": biases that are linear '
        "in the distance, the 560 million one's width.",
        depths("n_layer", train=(4, 12), infer=(8,)),
        vocabulary=250880,
        hidden_size=1024,
        n_head=16,
    ),
    words(
        "falcon",
        "FalconForCausalLM",
        'Almazrouei et al. 2023, "The Falcon series of open language models": one key head, attention and feed-forward '
        "in parallel.",
        depths(LAYERS, train=(4, 10), infer=(6,)),
        vocabulary=65024,
        optimizer="adam",
    ),
    words(
        "gemma-2",
        "Gemma2ForCausalLM",
        'Gemma Team 2024, "Gemma 2: improving open language models at a practical size": local and global layers, '
        "soft limits of the logits, four norms a layer.",
        depths(LAYERS, train=(4, 10), infer=(6,)),
        vocabulary=256000,
    ),
    words(
        "gpt-bigcode",
        "GPTBigCodeForCausalLM",
        'Ben Allal et al. 2023, "SantaCoder: don\'t reach for the stars!": multi-query attention.',
        depths("n_layer", train=(6, 14), infer=(12,)),
        vocabulary=50257,
        optimizer="adam",
    ),
    words(
        "diff-transformer",
        "DiffLlamaForCausalLM",
        'Ye et al. 2025, "Differential Transformer", in the layers of Llama.',
        depths(LAYERS, train=(4, 10), infer=(8,)),
        vocabulary=32000,
    ),
)

EXPERTS = (
    words(
        "mixtral",
        "MixtralForCausalLM",
        'Jiang et al. 2024, "Mixtral of experts": two of eight experts per token.',
        depths(LAYERS, train=(2, 6), infer=(4,)),
        vocabulary=32000,
        length=128,
    ),
    words(
        "qwen2-moe",
        "Qwen2MoeForCausalLM",
        'Yang et al. 2024, "Qwen2 technical report": four of sixty fine-grained experts and a shared one.',
        depths(LAYERS, train=(3, 8), infer=(4,)),
        vocabulary=151936,
        length=128,
    ),
    words(
        "deepseek-v3",
        "DeepseekV3ForCausalLM",
        'DeepSeek-AI 2024, "DeepSeek-V3 technical report": latent attention, groups of experts; a dense layer, '
        "32 experts.",
        depths(LAYERS, train=(3, 6), infer=(4,)),
        vocabulary=129280,
        length=128,
        n_routed_experts=32,
        first_k_dense_replace=1,
    ),
    words(
        "gpt-oss",
        "GptOssForCausalLM",
        'OpenAI 2025, "gpt-oss-120b & gpt-oss-20b model card": sinks of attention, sliding windows, 32 experts.',
        depths(LAYERS, train=(2, 6), infer=(4,)),
        vocabulary=201088,
        length=128,
        num_local_experts=32,
    ),
)

RECURRENT = (
    words(
        "mamba-2",
        "Mamba2ForCausalLM",
        'Dao and Gu 2024, "Transformers are SSMs: generalized models and efficient algorithms through structured state '
        'space duality": chunks of 64.',
        depths(LAYERS, train=(4, 12), infer=(8,)),
        vocabulary=32768,
        chunk_size=64,
    ),
    words(
        "jamba",
        "JambaForCausalLM",
        'Lieber et al. 2024, "Jamba: a hybrid Transformer-Mamba language model": attention, state spaces and experts; '
        "the scan is unrolled over 24 words.",
        depths(LAYERS, train=(4, 8), infer=(6,)),
        vocabulary=65536,
        length=24,
        attn_layer_period=4,
        attn_layer_offset=2,
        use_mamba_kernels=False,
    ),
    words(
        "griffin",
        "RecurrentGemmaForCausalLM",
        'De et al. 2024, "Griffin: mixing gated linear recurrences with local attention for efficient language '
        'models", as RecurrentGemma; the recurrence is unrolled over 32 words.',
        depths(LAYERS, train=(3, 9), infer=(6,)),
        vocabulary=256000,
        length=32,
    ),
    words(
        "zamba",
        "ZambaForCausalLM",
        'Glorioso et al. 2024, "Zamba: a compact 7B SSM hybrid model": one attention layer, used again and again, '
        "between state spaces, whose scan is unrolled over 12 words.",
        depths(LAYERS, train=(6, 9), infer=(6,)),
        vocabulary=32000,
        length=12,
        attn_layer_period=3,
        attn_layer_offset=2,
        use_mamba_kernels=False,
    ),
    words(
        "xlstm",
        "xLSTMForCausalLM",
        'Beck et al. 2024, "xLSTM: extended long short-term memory", and Beck et al. 2025, "xLSTM 7B": matrix '
        "memories in chunks of 64.",
        depths(LAYERS, train=(2, 6), infer=(4,)),
        vocabulary=50304,
    ),
    words(
        "falcon-h1",
        "FalconH1ForCausalLM",
        'Zuo et al. 2025, "Falcon-H1: a family of hybrid-head language models": attention and state spaces side by '
        "side.",
        depths(LAYERS, train=(3, 8), infer=(5,)),
        vocabulary=128000,
        mamba_chunk_size=64,
    ),
    words(
        "minimax-01",
        "MiniMaxForCausalLM",
        'MiniMax 2025, "MiniMax-01: scaling foundation models with lightning attention": linear and softmax attention '
        "in turn, two of eight experts.",
        depths(LAYERS, train=(2, 6), infer=(4,)),
        vocabulary=32000,
        length=512,
    ),
    words(
        "lfm2",
        "Lfm2ForCausalLM",
        'Liquid AI 2025, "LFM2 technical report": short gated convolutions, attention at every third layer.',
        depths(LAYERS, train=(6, 12), infer=(9,)),
        vocabulary=65536,
        full_attn_idxs=[2, 5, 8, 11],
    ),
)

offer(__name__, (*DENSE, *EXPERTS, *RECURRENT))
