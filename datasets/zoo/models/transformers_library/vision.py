"""Classifiers of images and videos, and networks trained without labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from ..layers import token_loss
from ..workload import ids, reals
from .architecture import Architecture, infer, offer, train
from .rows import depths, images, stated

LAYERS = "num_hidden_layers"


def spelled(output: Any, targets: Mapping[str, Tensor]) -> Tensor:
    """Cross-entropies of letters, pairs of bytes and pieces of words, summed."""
    letters, pairs, pieces = output.logits
    return (
        token_loss(letters, targets["letters"])
        + token_loss(pairs, targets["pairs"])
        + token_loss(pieces, targets["pieces"])
    )


IMAGES = (
    images(
        "mobilevit-v2",
        "MobileViTV2ForImageClassification",
        'Mehta and Rastegari 2022, "Separable self-attention for mobile vision transformers".',
        (train("2-4-3"), train("1-2-1", n_attn_blocks=[1, 2, 1]), infer("3-6-4", n_attn_blocks=[3, 6, 4])),
        size=256,
    ),
    images(
        "pvt",
        "PvtForImageClassification",
        'Wang et al. 2021, "Pyramid vision transformer: a versatile backbone for dense prediction without '
        'convolutions": tiny, small, and medium.',
        (
            train("tiny"),
            train("small", depths=[3, 4, 6, 3]),
            infer("medium", depths=[3, 4, 18, 3]),
        ),
    ),
    images(
        "cvt",
        "CvtForImageClassification",
        'Wu et al. 2021, "CvT: introducing convolutions to vision transformers": CvT-13 and 21.',
        (train("13"), infer("21", depth=[1, 4, 16]), train("7", depth=[1, 2, 4])),
    ),
    images(
        "swiftformer",
        "SwiftFormerForImageClassification",
        'Shaker et al. 2023, "SwiftFormer: efficient additive attention for transformer-based real-time mobile vision '
        'applications": XS and L1.',
        (
            train("xs"),
            infer("l1", depths=[4, 3, 10, 5], embed_dims=[48, 96, 192, 384]),
        ),
        batch=32,
    ),
    images(
        "bit",
        "BitForImageClassification",
        'Kolesnikov et al. 2020, "Big Transfer (BiT): general visual representation learning": ResNet v2 with group '
        "normalisation and standardised weights, 26 and 50 layers.",
        (
            train("26", depths=[2, 2, 2, 2]),
            train("50"),
            infer("101", depths=[3, 4, 23, 3]),
        ),
    ),
    images(
        "swin-v2",
        "Swinv2ForImageClassification",
        'Liu et al. 2022, "Swin transformer V2: scaling up capacity and resolution": tiny and small.',
        (
            train("8", depths=[2, 2, 2, 2]),
            train("tiny"),
            infer("small", depths=[2, 2, 18, 2]),
        ),
        size=256,
        image_size=256,
        window_size=8,
    ),
    images(
        "textnet",
        "TextNetForImageClassification",
        'Chen et al. 2021, "FAST: faster arbitrarily-shaped text detector with minimalist kernel representation": the '
        "backbone for text.",
        (train("tiny"), infer("tiny")),
    ),
    images(
        "hgnet-v2",
        "HGNetV2ForImageClassification",
        'PaddlePaddle 2023, HGNetV2, the backbone of Zhao et al. 2024, "DETRs beat YOLOs on real-time object '
        'detection".',
        (train("l"), infer("l")),
    ),
    Architecture(
        "imagegpt",
        "ImageGPTForCausalImageModeling",
        'Chen et al. 2020, "Generative pretraining from pixels": 32 x 32 clusters of colours.',
        inputs={"input_ids": ids(512, 1, 1023)},
        targets={"labels": ids(512, 1, 1023)},
        sizes=depths("n_layer", train=(6, 12), infer=(24,)),
    ),
    Architecture(
        "vit-mae",
        "ViTMAEForPreTraining",
        'He et al. 2022, "Masked autoencoders are scalable vision learners".',
        inputs={"pixel_values": reals(8, 3, 224, 224), "noise": reals(8, 196)},
        loss=stated,
        sizes=(
            train("6l", num_hidden_layers=6, decoder_num_hidden_layers=4),
            train("12l", num_hidden_layers=12, decoder_num_hidden_layers=8),
            infer("24l", num_hidden_layers=24, decoder_num_hidden_layers=8),
        ),
        optimizer="adam",
    ),
    Architecture(
        "mgp-str",
        "MgpstrForSceneTextRecognition",
        'Wang et al. 2022, "Multi-granularity prediction for scene text recognition".',
        inputs={"pixel_values": reals(8, 3, 32, 128)},
        targets={"letters": ids(38, 8, 27), "pairs": ids(50257, 8, 27), "pieces": ids(30522, 8, 27)},
        loss=spelled,
        sizes=depths(LAYERS, train=(4, 10), infer=(12,)),
    ),
)

VIDEOS = (
    Architecture(
        "videomae",
        "VideoMAEForVideoClassification",
        'Tong et al. 2022, "VideoMAE: masked autoencoders are data-efficient learners for self-supervised video '
        'pre-training", fine-tuned.',
        inputs={"pixel_values": reals(1, 16, 3, 224, 224)},
        targets={"labels": ids(400, 1)},
        sizes=depths(LAYERS, train=(5, 12), infer=(24,)),
        settings={"num_labels": 400},
    ),
    Architecture(
        "timesformer",
        "TimesformerForVideoClassification",
        'Bertasius et al. 2021, "Is space-time attention all you need for video understanding?": divided attention.',
        inputs={"pixel_values": reals(1, 8, 3, 224, 224)},
        targets={"labels": ids(400, 1)},
        sizes=depths(LAYERS, train=(4, 12), infer=(8,)),
        settings={"num_labels": 400},
    ),
    Architecture(
        "vivit",
        "VivitForVideoClassification",
        'Arnab et al. 2021, "ViViT: a video vision transformer": joint attention.',
        inputs={"pixel_values": reals(1, 32, 3, 224, 224)},
        targets={"labels": ids(400, 1)},
        sizes=depths(LAYERS, train=(4, 10), infer=(12,)),
        settings={"num_labels": 400},
        optimizer="adam",
    ),
    Architecture(
        "v-jepa-2",
        "VJEPA2ForVideoClassification",
        'Assran et al. 2025, "V-JEPA 2: self-supervised video models enable understanding, prediction and planning": '
        "with an attentive classifier.",
        inputs={"pixel_values_videos": reals(1, 16, 3, 256, 256)},
        targets={"labels": ids(174, 1)},
        sizes=depths(LAYERS, train=(4, 12), infer=(8,)),
        settings={"num_labels": 174, "frames_per_clip": 16},
    ),
)

offer(__name__, (*IMAGES, *VIDEOS))
