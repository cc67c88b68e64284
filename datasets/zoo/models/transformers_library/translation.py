"""Encoders with decoders of text."""

from __future__ import annotations

from .architecture import offer
from .rows import depths, translation

BOTH = ("encoder_layers", "decoder_layers")

ROWS = (
    translation(
        "bart",
        "BartForConditionalGeneration",
        'Lewis et al. 2020, "BART: denoising sequence-to-sequence pre-training for natural language generation, '
        'translation, and comprehension".',
        depths(*BOTH, train=(3, 6), infer=(12,)),
        vocabulary=50265,
    ),
    translation(
        "pegasus-x",
        "PegasusXForConditionalGeneration",
        'Phang et al. 2023, "Investigating efficiently extending transformers for long input summarization": blocks '
        "of 512 with global tokens.",
        depths(*BOTH, train=(4, 8), infer=(6,)),
        vocabulary=96103,
        batch=1,
        length=2048,
    ),
    translation(
        "bigbird-pegasus",
        "BigBirdPegasusForConditionalGeneration",
        'Zaheer et al. 2020, "Big Bird: transformers for longer sequences", its summariser: blocks of 64.',
        depths(*BOTH, train=(1, 3), infer=(2,)),
        vocabulary=96103,
        batch=1,
        length=1024,
    ),
    translation(
        "prophetnet",
        "ProphetNetForConditionalGeneration",
        'Qi et al. 2020, "ProphetNet: predicting future n-gram for sequence-to-sequence pre-training": two streams of '
        "prediction.",
        depths("num_encoder_layers", "num_decoder_layers", train=(3, 6), infer=(4,)),
        vocabulary=30522,
    ),
    translation(
        "longt5",
        "LongT5ForConditionalGeneration",
        'Guo et al. 2022, "LongT5: efficient text-to-text transformer for long sequences": transient global '
        "attention.",
        depths("num_layers", "num_decoder_layers", train=(4, 8), infer=(6,)),
        vocabulary=32128,
        batch=1,
        length=1024,
        encoder_attention_type="transient-global",
    ),
    translation(
        "m2m-100",
        "M2M100ForConditionalGeneration",
        'Fan et al. 2021, "Beyond English-centric multilingual machine translation".',
        depths(*BOTH, train=(4, 8), infer=(12,)),
        vocabulary=128112,
        optimizer="adam",
    ),
    translation(
        "t5gemma",
        "T5GemmaForConditionalGeneration",
        'Zhang et al. 2025, "Encoder-decoder Gemma: improving the quality-efficiency trade-off via adaptation".',
        depths("encoder.num_hidden_layers", "decoder.num_hidden_layers", train=(3, 6), infer=(4,)),
        vocabulary=256000,
    ),
)

offer(__name__, ROWS)
