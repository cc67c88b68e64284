"""Networks of images with texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor
from torch.nn import functional as F

from ..workload import ids, reals
from .architecture import Architecture, infer, offer, train
from .rows import contrasted, depths, stated


def told_apart(output: Any, targets: Mapping[str, Tensor]) -> Tensor:
    """Cross-entropy of the right text of each video."""
    return F.cross_entropy(output.logits_per_video, targets["classes"])


TEXT_AND_VISION = ("text_config.num_hidden_layers", "vision_config.num_hidden_layers")

CONTRASTIVE = (
    Architecture(
        "siglip",
        "SiglipModel",
        'Zhai et al. 2023, "Sigmoid loss for language image pre-training".',
        inputs={"input_ids": ids(32000, 8, 64), "pixel_values": reals(8, 3, 224, 224)},
        sizes=depths(*TEXT_AND_VISION, train=(4, 12), infer=(8,)),
        loss=stated,
        fixed={"return_loss": True},
        optimizer="adam",
    ),
    Architecture(
        "align",
        "AlignModel",
        'Jia et al. 2021, "Scaling up visual and vision-language representation learning with noisy text supervision": '
        "an EfficientNet and BERT.",
        inputs={"input_ids": ids(30522, 8, 64), "pixel_values": reals(8, 3, 289, 289)},
        targets={"pairs": ids(8, 8)},
        loss=contrasted,
        sizes=depths("text_config.num_hidden_layers", train=(4,), infer=(12,)),
        settings={
            "vision_config": {"depth_coefficient": 1.0, "width_coefficient": 1.0, "hidden_dim": 320},
            "projection_dim": 320,
        },
    ),
    Architecture(
        "x-clip",
        "XCLIPModel",
        'Ni et al. 2022, "Expanding language-image pretrained models for general video recognition": 8 frames, 16 '
        "classes in words.",
        inputs={"pixel_values": reals(2, 8, 3, 224, 224), "input_ids": ids(49408, 16, 77)},
        targets={"classes": ids(16, 2)},
        loss=told_apart,
        sizes=depths(*TEXT_AND_VISION, train=(4,), infer=(12,)),
    ),
)

FUSED = (
    Architecture(
        "lxmert",
        "LxmertForPreTraining",
        'Tan and Bansal 2019, "LXMERT: learning cross-modality encoder representations from transformers": masked '
        "words and matching.",
        inputs={
            "input_ids": ids(30522, 4, 20),
            "visual_feats": reals(4, 36, 2048),
            "visual_pos": reals(4, 36, 4),
        },
        targets={"labels": ids(30522, 4, 20), "matched_label": ids(2, 4)},
        sizes=(
            train("4-2-2", l_layers=4, x_layers=2, r_layers=2),
            train("9-5-5"),
            infer("6-3-3", l_layers=6, x_layers=3, r_layers=3),
        ),
    ),
    Architecture(
        "visualbert",
        "VisualBertForPreTraining",
        'Li et al. 2019, "VisualBERT: a simple and performant baseline for vision and language".',
        inputs={
            "input_ids": ids(30522, 4, 32),
            "attention_mask": ids(2, 4, 32),
            "visual_embeds": reals(4, 36, 512),
            "visual_attention_mask": ids(2, 4, 36),
            "visual_token_type_ids": ids(2, 4, 36),
        },
        targets={"labels": ids(30522, 4, 68), "sentence_image_labels": ids(2, 4)},
        sizes=depths("num_hidden_layers", train=(5, 12), infer=(9,)),
        optimizer="adam",
    ),
    Architecture(
        "bridgetower",
        "BridgeTowerForMaskedLM",
        'Xu et al. 2023, "BridgeTower: building bridges between encoders in vision-language representation learning".',
        inputs={"input_ids": ids(50265, 2, 50), "pixel_values": reals(2, 3, 288, 288)},
        targets={"labels": ids(50265, 2, 50)},
        sizes=(
            train(
                "6l",
                num_hidden_layers=3,
                text_config={"num_hidden_layers": 6},
                vision_config={"num_hidden_layers": 6},
            ),
            infer("12l"),
        ),
    ),
    Architecture(
        "flava",
        "FlavaModel",
        'Singh et al. 2022, "FLAVA: a foundational language and vision alignment model": the three encoders.',
        inputs={"input_ids": ids(30522, 4, 77), "pixel_values": reals(4, 3, 224, 224)},
        sizes=depths(
            "text_config.num_hidden_layers",
            "image_config.num_hidden_layers",
            "multimodal_config.num_hidden_layers",
            infer=(4, 8),
        ),
    ),
)

WRITERS = (
    Architecture(
        "blip",
        "BlipForConditionalGeneration",
        'Li et al. 2022, "BLIP: bootstrapping language-image pre-training for unified vision-language understanding '
        'and generation": captions.',
        inputs={"pixel_values": reals(2, 3, 384, 384), "input_ids": ids(30524, 2, 32)},
        targets={"labels": ids(30524, 2, 32)},
        sizes=depths(*TEXT_AND_VISION, train=(4, 12), infer=(8,)),
    ),
    Architecture(
        "blip-2",
        "Blip2ForConditionalGeneration",
        'Li et al. 2023, "BLIP-2: bootstrapping language-image pre-training with frozen image encoders and large '
        'language models", trained as a whole.',
        inputs={
            "pixel_values": reals(1, 3, 224, 224),
            "input_ids": ids(50272, 1, 64),
        },
        targets={"labels": ids(50272, 1, 64)},
        sizes=(
            train(
                "4l",
                vision_config={"num_hidden_layers": 4},
                qformer_config={"num_hidden_layers": 4},
                text_config={"num_hidden_layers": 4},
            ),
            infer(
                "8l",
                vision_config={"num_hidden_layers": 8},
                qformer_config={"num_hidden_layers": 6},
                text_config={"num_hidden_layers": 8},
            ),
        ),
        settings={"text_config": {"model_type": "opt", "vocab_size": 50304}, "image_token_index": 50265},
    ),
    Architecture(
        "git",
        "GitForCausalLM",
        'Wang et al. 2022, "GIT: a generative image-to-text transformer for vision and language".',
        inputs={"input_ids": ids(30522, 2, 40), "pixel_values": reals(2, 3, 224, 224)},
        targets={"labels": ids(30522, 2, 40)},
        sizes=depths("num_hidden_layers", "vision_config.num_hidden_layers", train=(4, 10), infer=(6,)),
    ),
    Architecture(
        "llava",
        "LlavaForConditionalGeneration",
        'Liu et al. 2023, "Visual instruction tuning": CLIP at 336 pixels and Llama.',
        inputs={"input_ids": ids(32064, 1, 640), "pixel_values": reals(1, 3, 336, 336)},
        targets={"labels": ids(32064, 1, 640)},
        sizes=depths(*TEXT_AND_VISION, train=(4, 8), infer=(6,)),
        settings={"vision_config": {"model_type": "clip_vision_model", "image_size": 336, "patch_size": 14}},
    ),
    Architecture(
        "paligemma",
        "PaliGemmaForConditionalGeneration",
        'Beyer et al. 2024, "PaliGemma: a versatile 3B VLM for transfer": SigLIP and Gemma.',
        inputs={"input_ids": ids(257152, 1, 320), "pixel_values": reals(1, 3, 224, 224)},
        sizes=depths(*TEXT_AND_VISION, infer=(4, 8)),
    ),
    Architecture(
        "pix2struct",
        "Pix2StructForConditionalGeneration",
        'Lee et al. 2023, "Pix2Struct: screenshot parsing as pretraining for visual language understanding".',
        inputs={
            "flattened_patches": reals(1, 1024, 770),
            "attention_mask": reals(1, 1024),
            "decoder_input_ids": ids(50244, 1, 64),
        },
        targets={"labels": ids(50244, 1, 64)},
        sizes=depths("text_config.num_layers", "vision_config.num_hidden_layers", train=(4, 8), infer=(12,)),
    ),
    Architecture(
        "trocr",
        "VisionEncoderDecoderModel",
        'Li et al. 2023, "TrOCR: transformer-based optical character recognition with pre-trained models".',
        inputs={"pixel_values": reals(2, 3, 384, 384), "decoder_input_ids": ids(50265, 2, 64)},
        targets={"labels": ids(50265, 2, 64)},
        sizes=depths("encoder.num_hidden_layers", "decoder.decoder_layers", train=(4, 8), infer=(12,)),
        settings={
            "encoder": {"model_type": "vit", "image_size": 384},
            "decoder": {
                "model_type": "trocr",
                "vocab_size": 50265,
                "add_cross_attention": True,
                "is_decoder": True,
            },
            "pad_token_id": 1,
            "decoder_start_token_id": 2,
        },
        fixed={"use_cache": False},
    ),
    Architecture(
        "nougat",
        "VisionEncoderDecoderModel",
        'Blecher et al. 2024, "Nougat: neural optical understanding for academic documents", and Kim et al. 2022, '
        '"OCR-free document understanding transformer": Swin and BART.',
        inputs={"pixel_values": reals(1, 3, 448, 336), "decoder_input_ids": ids(50000, 1, 128)},
        targets={"labels": ids(50000, 1, 128)},
        sizes=depths("decoder.decoder_layers", train=(4,), infer=(10,)),
        settings={
            "encoder": {
                "model_type": "donut-swin",
                "image_size": [448, 336],
                "depths": [2, 2, 6, 2],
                "embed_dim": 128,
                "num_heads": [4, 8, 16, 32],
                "window_size": 7,
            },
            "decoder": {
                "model_type": "mbart",
                "vocab_size": 50000,
                "add_cross_attention": True,
                "is_decoder": True,
                "scale_embedding": True,
            },
            "pad_token_id": 1,
            "decoder_start_token_id": 2,
        },
        fixed={"use_cache": False},
    ),
    Architecture(
        "florence-2",
        "Florence2ForConditionalGeneration",
        'Xiao et al. 2024, "Florence-2: advancing a unified representation for a variety of vision tasks": DaViT and '
        "BART.",
        inputs={
            "input_ids": ids(51289, 1, 640),
            "pixel_values": reals(1, 3, 768, 768),
            "decoder_input_ids": ids(51289, 1, 64),
        },
        targets={"labels": ids(51289, 1, 64)},
        sizes=depths("text_config.encoder_layers", "text_config.decoder_layers", train=(3,), infer=(6,)),
    ),
)

offer(__name__, (*CONTRASTIVE, *FUSED, *WRITERS))
