"""Encoders of text, proteins and documents."""

from __future__ import annotations

from ..workload import ids, reals
from .architecture import infer, offer, train
from .rows import depths, words

LAYERS = "num_hidden_layers"

TEXT = (
    words(
        "deberta-v2",
        "DebertaV2ForMaskedLM",
        'He et al. 2021, "DeBERTa: decoding-enhanced BERT with disentangled attention", version 2 in its base width.',
        depths(LAYERS, train=(4, 12), infer=(8,)),
        vocabulary=128100,
        batch=4,
        length=128,
        hidden_size=768,
        num_attention_heads=12,
        intermediate_size=3072,
        relative_attention=True,
        pos_att_type=["p2c", "c2p"],
        position_buckets=256,
        norm_rel_ebd="layer_norm",
        share_att_key=True,
    ),
    words(
        "mobilebert",
        "MobileBertForMaskedLM",
        'Sun et al. 2020, "MobileBERT: a compact task-agnostic BERT for resource-limited devices".',
        depths(LAYERS, train=(4, 12), infer=(24,)),
        vocabulary=30522,
        batch=8,
        length=128,
    ),
    words(
        "squeezebert",
        "SqueezeBertForMaskedLM",
        'Iandola et al. 2020, "SqueezeBERT: what can computer vision teach NLP about efficient neural networks?".',
        depths(LAYERS, train=(4, 12), infer=(8,)),
        vocabulary=30522,
        batch=8,
        length=128,
    ),
    words(
        "fnet",
        "FNetForMaskedLM",
        'Lee-Thorp et al. 2022, "FNet: mixing tokens with Fourier transforms".',
        depths(LAYERS, train=(6, 12), infer=(12,)),
        vocabulary=32000,
        batch=4,
        length=512,
        optimizer="adam",
    ),
    words(
        "convbert",
        "ConvBertForMaskedLM",
        'Jiang et al. 2020, "ConvBERT: improving BERT with span-based dynamic convolution".',
        depths(LAYERS, train=(4, 12), infer=(8,)),
        vocabulary=30522,
        batch=4,
        length=128,
    ),
    words(
        "nystromformer",
        "NystromformerForMaskedLM",
        'Xiong et al. 2021, "Nyströmformer: a Nyström-based algorithm for approximating self-attention".',
        depths(LAYERS, train=(4, 10), infer=(6,)),
        vocabulary=30000,
        batch=4,
        length=512,
        inputs={"attention_mask": reals(4, 1, 1, 512)},
        max_position_embeddings=512,
        segment_means_seq_len=512,
    ),
    words(
        "roformer",
        "RoFormerForMaskedLM",
        'Su et al. 2021, "RoFormer: enhanced transformer with rotary position embedding".',
        depths(LAYERS, train=(4, 12), infer=(8,)),
        vocabulary=50000,
        batch=4,
        length=128,
    ),
    words(
        "bigbird",
        "BigBirdForMaskedLM",
        'Zaheer et al. 2020, "Big Bird: transformers for longer sequences": blocks of 64.',
        depths(LAYERS, train=(2, 4), infer=(3,)),
        vocabulary=50358,
        length=1024,
    ),
    words(
        "xlnet",
        "XLNetLMHeadModel",
        'Yang et al. 2019, "XLNet: generalized autoregressive pretraining for language understanding".',
        depths("n_layer", train=(4, 12), infer=(8,)),
        vocabulary=32000,
        batch=2,
        length=128,
    ),
    words(
        "funnel-transformer",
        "FunnelForMaskedLM",
        'Dai et al. 2020, "Funnel-Transformer: filtering out sequential redundancy for efficient language '
        'processing".',
        (
            train("2-2-2", block_sizes=[2, 2, 2]),
            train("4-4-4", block_sizes=[4, 4, 4]),
            infer("6-6-6", block_sizes=[6, 6, 6]),
        ),
        vocabulary=30522,
        batch=4,
        length=256,
    ),
    words(
        "canine",
        "CanineForTokenClassification",
        'Clark et al. 2022, "CANINE: pre-training an efficient tokenization-free encoder for language representation": '
        "tagging of letters in blocks of 128.",
        depths(LAYERS, train=(4, 12), infer=(8,)),
        vocabulary=1_114_112,
        classes=9,
        num_labels=9,
        length=1024,
    ),
    words(
        "modernbert",
        "ModernBertForMaskedLM",
        'Warner et al. 2024, "Smarter, better, faster, longer: a modern bidirectional encoder for fast, memory '
        'efficient, and long context finetuning and inference".',
        depths(LAYERS, train=(6, 22), infer=(12,)),
        vocabulary=50368,
        batch=2,
        length=512,
    ),
    words(
        "esm",
        "EsmForMaskedLM",
        'Lin et al. 2023, "Evolutionary-scale prediction of atomic-level protein structure with a language model": '
        "ESM-2 in its sizes of 6, 12 and 30 layers.",
        (
            train("6l", num_hidden_layers=6, hidden_size=320, num_attention_heads=20, intermediate_size=1280),
            train(
                "30l", num_hidden_layers=30, hidden_size=640, num_attention_heads=20, intermediate_size=2560
            ),
            infer(
                "12l", num_hidden_layers=12, hidden_size=480, num_attention_heads=20, intermediate_size=1920
            ),
        ),
        vocabulary=33,
        batch=2,
        length=512,
        vocab_size=33,
        mask_token_id=32,
        pad_token_id=1,
        position_embedding_type="rotary",
        emb_layer_norm_before=False,
        token_dropout=True,
    ),
    words(
        "mpnet",
        "MPNetForMaskedLM",
        'Song et al. 2020, "MPNet: masked and permuted pre-training for language understanding".',
        depths(LAYERS, train=(4, 12), infer=(8,)),
        vocabulary=30527,
        batch=4,
        length=128,
        optimizer="adam",
    ),
    words(
        "luke",
        "LukeForMaskedLM",
        'Yamada et al. 2020, "LUKE: deep contextualized entity representations with entity-aware self-attention".',
        depths(LAYERS, train=(4, 10), infer=(6,)),
        vocabulary=50267,
        batch=2,
        length=128,
        inputs={
            "entity_ids": ids(500_000, 2, 16),
            "entity_attention_mask": ids(2, 2, 16),
            "entity_position_ids": ids(128, 2, 16, 30),
        },
    ),
    words(
        "yoso",
        "YosoForMaskedLM",
        'Zeng et al. 2021, "You only sample (almost) once: linear cost self-attention via Bernoulli sampling", by '
        "expectation.",
        depths(LAYERS, train=(4, 10), infer=(6,)),
        vocabulary=50265,
        batch=2,
        length=256,
        use_expectation=True,
    ),
)

DOCUMENTS = (
    words(
        "layoutlm",
        "LayoutLMForTokenClassification",
        'Xu et al. 2020, "LayoutLM: pre-training of text and layout for document image understanding".',
        depths(LAYERS, train=(4, 12), infer=(8,)),
        vocabulary=30522,
        classes=7,
        num_labels=7,
        batch=2,
        inputs={"bbox": ids(1000, 2, 256, 4)},
    ),
    words(
        "layoutlm-v3",
        "LayoutLMv3ForTokenClassification",
        'Huang et al. 2022, "LayoutLMv3: pre-training for document AI with unified text and image masking".',
        depths(LAYERS, train=(4, 10), infer=(6,)),
        vocabulary=50265,
        classes=7,
        num_labels=7,
        batch=2,
        inputs={"bbox": ids(1000, 2, 256, 4), "pixel_values": reals(2, 3, 224, 224)},
    ),
    words(
        "lilt",
        "LiltForTokenClassification",
        'Wang et al. 2022, "LiLT: a simple yet effective language-independent layout transformer for structured '
        'document understanding".',
        depths(LAYERS, train=(4, 10), infer=(6,)),
        vocabulary=30522,
        classes=7,
        num_labels=7,
        batch=2,
        inputs={"bbox": ids(1000, 2, 256, 4)},
    ),
    words(
        "bros",
        "BrosForTokenClassification",
        'Hong et al. 2022, "BROS: a pre-trained language model focusing on text and layout for better key information '
        'extraction from documents".',
        depths(LAYERS, train=(4, 10), infer=(6,)),
        vocabulary=30522,
        classes=7,
        num_labels=7,
        batch=2,
        inputs={"bbox": reals(2, 256, 4)},
    ),
    words(
        "markuplm",
        "MarkupLMForTokenClassification",
        'Li et al. 2022, "MarkupLM: pre-training of text and markup language for visually rich document '
        'understanding".',
        depths(LAYERS, train=(4, 12), infer=(8,)),
        vocabulary=30522,
        classes=7,
        num_labels=7,
        batch=2,
        inputs={"xpath_tags_seq": ids(216, 2, 256, 50), "xpath_subs_seq": ids(1001, 2, 256, 50)},
        max_depth=50,
    ),
)

offer(__name__, (*TEXT, *DOCUMENTS))
