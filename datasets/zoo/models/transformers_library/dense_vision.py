"""Detection, segmentation, depth, keypoints and restoration of images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor
from torch.nn import functional as F

from ..workload import ids, reals
from .architecture import Architecture, infer, offer, train
from .rows import depth, depths, masked, matched

RESNET = {"model_type": "resnet", "out_features": ["stage2", "stage3", "stage4"]}
LAST_STAGE = {"model_type": "resnet", "out_features": ["stage4"]}
BOTH = ("encoder_layers", "decoder_layers")


def alpha(output: Any, targets: Mapping[str, Tensor]) -> Tensor:
    """Absolute differences of opacities."""
    return F.l1_loss(output.alphas, targets["alpha"])


def heatmaps(output: Any, targets: Mapping[str, Tensor]) -> Tensor:
    """Squared differences of heat maps of joints."""
    return F.mse_loss(output.heatmaps, targets["heatmaps"])


def prompted(output: Any, targets: Mapping[str, Tensor]) -> Tensor:
    """Cross-entropy of the first mask of each prompt, squared error of its predicted quality."""
    masks = output.pred_masks[:, :, 0]
    return F.binary_cross_entropy_with_logits(masks, targets["masks"]) + output.iou_scores.square().mean()


def restored(output: Any, targets: Mapping[str, Tensor]) -> Tensor:
    """Absolute differences of images."""
    return F.l1_loss(output.reconstruction, targets["image"])


DETECTION = (
    Architecture(
        "conditional-detr",
        "ConditionalDetrForObjectDetection",
        'Meng et al. 2021, "Conditional DETR for fast training convergence", on ResNet-50.',
        inputs={"pixel_values": reals(1, 3, 480, 640), "pixel_mask": ids(2, 1, 480, 640)},
        targets={"objects": ids(91, 1, 300), "boxes": reals(1, 300, 4)},
        loss=matched,
        sizes=depths(*BOTH, train=(3, 6), infer=(6,)),
        settings={
            "backbone_config": LAST_STAGE,
            "num_labels": 91,
            "use_timm_backbone": False,
            "backbone": None,
        },
        finite=True,
    ),
    Architecture(
        "dab-detr",
        "DabDetrForObjectDetection",
        'Liu et al. 2022, "DAB-DETR: dynamic anchor boxes are better queries for DETR", on ResNet-50.',
        inputs={"pixel_values": reals(1, 3, 480, 640), "pixel_mask": ids(2, 1, 480, 640)},
        targets={"objects": ids(91, 1, 300), "boxes": reals(1, 300, 4)},
        loss=matched,
        sizes=depths(*BOTH, train=(3, 6), infer=(6,)),
        settings={
            "backbone_config": LAST_STAGE,
            "num_labels": 91,
            "use_timm_backbone": False,
            "backbone": None,
        },
        finite=True,
    ),
    Architecture(
        "deformable-detr",
        "DeformableDetrForObjectDetection",
        'Zhu et al. 2021, "Deformable DETR: deformable transformers for end-to-end object detection", on ResNet-50.',
        inputs={"pixel_values": reals(1, 3, 480, 640), "pixel_mask": ids(2, 1, 480, 640)},
        targets={"objects": ids(91, 1, 300), "boxes": reals(1, 300, 4)},
        loss=matched,
        sizes=depths(*BOTH, train=(3, 6), infer=(4,)),
        settings={"backbone_config": RESNET, "num_labels": 91, "use_timm_backbone": False, "backbone": None},
        finite=True,
    ),
    Architecture(
        "rt-detr",
        "RTDetrForObjectDetection",
        'Zhao et al. 2024, "DETRs beat YOLOs on real-time object detection", on ResNet-50.',
        inputs={"pixel_values": reals(1, 3, 640, 640)},
        targets={"objects": ids(80, 1, 300), "boxes": reals(1, 300, 4)},
        loss=matched,
        sizes=depths("decoder_layers", train=(3, 6), infer=(6,)),
        settings={"num_labels": 80, "num_denoising": 0},
        finite=True,
    ),
    Architecture(
        "d-fine",
        "DFineForObjectDetection",
        'Peng et al. 2025, "D-FINE: redefine regression task in DETRs as fine-grained distribution refinement".',
        inputs={"pixel_values": reals(1, 3, 640, 640)},
        targets={"objects": ids(80, 1, 300), "boxes": reals(1, 300, 4)},
        loss=matched,
        sizes=depths("decoder_layers", train=(3, 6), infer=(6,)),
        settings={"num_labels": 80, "num_denoising": 0},
        finite=True,
    ),
    Architecture(
        "yolos",
        "YolosForObjectDetection",
        'Fang et al. 2021, "You only look at one sequence: rethinking transformer in vision through object detection".',
        inputs={"pixel_values": reals(1, 3, 512, 864)},
        targets={"objects": ids(92, 1, 100), "boxes": reals(1, 100, 4)},
        loss=matched,
        sizes=depths("num_hidden_layers", train=(4, 12), infer=(8,)),
        settings={"num_labels": 91},
        optimizer="adam",
    ),
    Architecture(
        "owl-vit",
        "OwlViTForObjectDetection",
        'Minderer et al. 2022, "Simple open-vocabulary object detection with vision transformers".',
        inputs={"input_ids": ids(49408, 4, 16), "pixel_values": reals(1, 3, 768, 768)},
        targets={"objects": ids(4, 1, 576), "boxes": reals(1, 576, 4)},
        loss=matched,
        sizes=depths(
            "text_config.num_hidden_layers", "vision_config.num_hidden_layers", train=(3, 8), infer=(12,)
        ),
    ),
    Architecture(
        "grounding-dino",
        "GroundingDinoForObjectDetection",
        'Liu et al. 2024, "Grounding DINO: marrying DINO with grounded pre-training for open-set object detection", on '
        "Swin-T and BERT of 4 layers.",
        inputs={
            "pixel_values": reals(1, 3, 480, 640),
            "input_ids": ids(30522, 1, 16),
            "attention_mask": ids(2, 1, 16),
        },
        targets={"objects": ids(256, 1, 900), "boxes": reals(1, 900, 4)},
        loss=matched,
        sizes=depths(*BOTH, train=(2, 6), infer=(4,)),
        settings={"text_config": {"model_type": "bert", "num_hidden_layers": 4}},
        finite=True,
    ),
)

SEGMENTATION = (
    Architecture(
        "maskformer",
        "MaskFormerForInstanceSegmentation",
        'Cheng et al. 2021, "Per-pixel classification is not all you need for semantic segmentation", on Swin.',
        inputs={"pixel_values": reals(1, 3, 384, 384)},
        targets={"objects": ids(151, 1, 100), "masks": reals(1, 100, 96, 96)},
        loss=masked,
        sizes=depths("decoder_config.decoder_layers", train=(3,), infer=(6,)),
        settings={
            "num_labels": 150,
            "backbone_config": {
                "model_type": "swin",
                "depths": [2, 2, 6, 2],
                "embed_dim": 96,
                "num_heads": [3, 6, 12, 24],
                "image_size": 384,
                "window_size": 12,
                "out_features": ["stage1", "stage2", "stage3", "stage4"],
            },
            "decoder_config": {"model_type": "detr"},
        },
        finite=True,
    ),
    Architecture(
        "mask2former",
        "Mask2FormerForUniversalSegmentation",
        'Cheng et al. 2022, "Masked-attention mask transformer for universal image segmentation", on Swin.',
        inputs={"pixel_values": reals(1, 3, 384, 384)},
        targets={"objects": ids(151, 1, 100), "masks": reals(1, 100, 96, 96)},
        loss=masked,
        sizes=depths(*BOTH, train=(4,), infer=(6,)),
        settings={"num_labels": 150},
        finite=True,
    ),
    Architecture(
        "eomt",
        "EomtForUniversalSegmentation",
        'Kerssies et al. 2025, "Your ViT is secretly an image segmentation model", with its masks of '
        "attention annealed away.",
        inputs={"pixel_values": reals(1, 3, 640, 640)},
        targets={"objects": ids(151, 1, 200), "masks": reals(1, 200, 160, 160)},
        loss=masked,
        sizes=depths("num_hidden_layers", infer=(6, 12)),
        settings={"num_labels": 150},
        finite=True,
    ),
    Architecture(
        "sam",
        "SamModel",
        'Kirillov et al. 2023, "Segment anything": one image, 16 points.',
        inputs={
            "pixel_values": reals(1, 3, 1024, 1024),
            "input_points": reals(1, 16, 1, 2),
            "input_labels": ids(2, 1, 16, 1),
        },
        targets={"masks": reals(1, 16, 256, 256)},
        loss=prompted,
        sizes=(
            train("4l", vision_config={"num_hidden_layers": 4, "global_attn_indexes": [1, 3]}),
            train("12l", vision_config={"num_hidden_layers": 12, "global_attn_indexes": [2, 5, 8, 11]}),
            infer("8l", vision_config={"num_hidden_layers": 8, "global_attn_indexes": [1, 3, 5, 7]}),
        ),
    ),
    Architecture(
        "sam-2",
        "Sam2Model",
        'Ravi et al. 2025, "SAM 2: segment anything in images and videos": one image, 16 points, Hiera tiny.',
        inputs={
            "pixel_values": reals(1, 3, 1024, 1024),
            "input_points": reals(1, 16, 1, 2),
            "input_labels": ids(2, 1, 16, 1),
        },
        targets={"masks": reals(1, 16, 256, 256)},
        loss=prompted,
        sizes=(train("tiny"), infer("tiny")),
    ),
    Architecture(
        "seggpt",
        "SegGptForImageSegmentation",
        'Wang et al. 2023, "SegGPT: segmenting everything in context".',
        inputs={
            "pixel_values": reals(1, 3, 448, 448),
            "prompt_pixel_values": reals(1, 3, 448, 448),
            "prompt_masks": reals(1, 3, 448, 448),
        },
        sizes=(
            infer("8l", num_hidden_layers=8, intermediate_hidden_state_indices=[1, 3, 5, 7], merge_index=0),
            infer("24l"),
        ),
    ),
    Architecture(
        "clipseg",
        "CLIPSegForImageSegmentation",
        'Lüddecke and Ecker 2022, "Image segmentation using text and image prompts": only the decoder is trained.',
        inputs={"input_ids": ids(49408, 4, 77), "pixel_values": reals(4, 3, 352, 352)},
        targets={"labels": reals(4, 352, 352)},
        sizes=(
            train("6l", text_config={"num_hidden_layers": 6}, vision_config={"num_hidden_layers": 10}),
            infer("12l", text_config={"num_hidden_layers": 12}, vision_config={"num_hidden_layers": 12}),
        ),
        settings={"vision_config": {"image_size": 352}},
    ),
)

DEPTHS = (
    Architecture(
        "dpt",
        "DPTForDepthEstimation",
        'Ranftl et al. 2021, "Vision transformers for dense prediction".',
        inputs={"pixel_values": reals(2, 3, 384, 384)},
        targets={"depth": reals(2, 384, 384)},
        loss=depth,
        sizes=(
            train("4l", num_hidden_layers=4, backbone_out_indices=[0, 1, 2, 3]),
            train("12l"),
            infer("24l", num_hidden_layers=24, backbone_out_indices=[5, 11, 17, 23]),
        ),
    ),
    Architecture(
        "glpn",
        "GLPNForDepthEstimation",
        'Kim et al. 2022, "Global-local path networks for monocular depth estimation with vertical CutDepth".',
        inputs={"pixel_values": reals(2, 3, 480, 640)},
        targets={"depth": reals(2, 480, 640)},
        loss=depth,
        sizes=(train("8l"), infer("13l", depths=[2, 3, 5, 3]), train("16l", depths=[3, 4, 6, 3])),
    ),
    Architecture(
        "depth-anything",
        "DepthAnythingForDepthEstimation",
        'Yang et al. 2024, "Depth Anything: unleashing the power of large-scale unlabeled data", small.',
        inputs={"pixel_values": reals(1, 3, 518, 518)},
        targets={"depth": reals(1, 518, 518)},
        loss=depth,
        sizes=(
            train("12l"),
            infer("12l"),
        ),
    ),
    Architecture(
        "zoedepth",
        "ZoeDepthForDepthEstimation",
        'Bhat et al. 2023, "ZoeDepth: zero-shot transfer by combining relative and metric depth".',
        inputs={"pixel_values": reals(1, 3, 384, 384)},
        targets={"depth": reals(1, 384, 384)},
        loss=depth,
        sizes=(train("12l"), infer("12l")),
    ),
)

OTHERS = (
    Architecture(
        "efficient-loftr",
        "EfficientLoFTRForKeypointMatching",
        'Wang et al. 2024, "Efficient LoFTR: semi-dense local feature matching with sparse-like speed".',
        inputs={"pixel_values": reals(1, 2, 3, 480, 640)},
        sizes=(infer("vga"),),
    ),
    Architecture(
        "swin2sr",
        "Swin2SRForImageSuperResolution",
        'Conde et al. 2022, "Swin2SR: SwinV2 transformer for compressed image super-resolution and restoration".',
        inputs={"pixel_values": reals(1, 3, 64, 64)},
        targets={"image": reals(1, 3, 128, 128)},
        loss=restored,
        sizes=(
            train("2x2", depths=[2, 2], num_heads=[6, 6]),
            train("4x4", depths=[4, 4, 4, 4], num_heads=[6, 6, 6, 6]),
            infer("6x6"),
        ),
        optimizer="adam",
    ),
    Architecture(
        "vitmatte",
        "VitMatteForImageMatting",
        'Yao et al. 2024, "ViTMatte: boosting image matting with pre-trained plain vision transformers".',
        inputs={"pixel_values": reals(1, 4, 512, 512)},
        targets={"alpha": reals(1, 1, 512, 512)},
        loss=alpha,
        sizes=(
            train("12l", backbone_config={"num_hidden_layers": 12, "residual_block_indices": [2, 5, 8, 11]}),
            infer("6l", backbone_config={"num_hidden_layers": 6, "residual_block_indices": [2, 5]}),
        ),
        settings={
            "backbone_config": {
                "model_type": "vitdet",
                "num_channels": 4,
                "image_size": 512,
                "hidden_size": 384,
                "num_attention_heads": 6,
                "use_relative_position_embeddings": True,
                "window_size": 14,
                "window_block_indices": [0, 1, 3, 4],
                "out_features": ["stage6"],
            },
            "convstream_hidden_sizes": [48, 96, 192],
            "fusion_hidden_sizes": [256, 128, 64, 32],
        },
    ),
    Architecture(
        "vitpose",
        "VitPoseForPoseEstimation",
        'Xu et al. 2022, "ViTPose: simple vision transformer baselines for human pose estimation".',
        inputs={"pixel_values": reals(8, 3, 256, 192)},
        targets={"heatmaps": reals(8, 17, 64, 48)},
        loss=heatmaps,
        sizes=(
            train("6l", backbone_config={"num_hidden_layers": 6, "out_indices": [6]}),
            infer("12l", backbone_config={"num_hidden_layers": 12, "out_indices": [12]}),
        ),
        settings={"backbone_config": {"model_type": "vitpose_backbone"}, "num_labels": 17},
        optimizer="adam",
    ),
)

offer(__name__, (*DETECTION, *SEGMENTATION, *DEPTHS, *OTHERS))
