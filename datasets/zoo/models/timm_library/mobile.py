"""Networks for small devices, many of them found by search."""

from __future__ import annotations

from .architecture import Architecture, infer, offer, train

# fmt: off
TABLE = (
    Architecture(
        "mobilenet-v4",
        'Qin et al. 2024, "MobileNetV4: universal models for the mobile ecosystem": the small convolutional and the '
        "medium hybrid network.",
        "adam",
        (
            train("mobilenetv4_conv_small"), infer("mobilenetv4_conv_small"), train("mobilenetv4_hybrid_medium", 256),
            infer("mobilenetv4_hybrid_medium", 256),
        ),
    ),
    Architecture(
        "fbnet",
        'Wu et al. 2019, "FBNet: hardware-aware efficient ConvNet design via differentiable neural architecture '
        'search": FBNet-C; Dai et al. 2021, "FBNetV3: joint architecture-recipe search using predictor pretraining": '
        "FBNetV3-B.",
        "sgd",
        (train("fbnetc_100"), infer("fbnetc_100"), train("fbnetv3_b")),
    ),
    Architecture(
        "mixnet",
        'Tan and Le 2019, "MixConv: mixed depthwise convolutional kernels": MixNet-S and L.',
        "sgd",
        (train("mixnet_s"), infer("mixnet_s"), train("mixnet_l")),
    ),
    Architecture(
        "tinynet",
        'Han et al. 2020, "Model Rubik\'s cube: twisting resolution, depth and width for TinyNets": A and E.',
        "sgd",
        (train("tinynet_e", 106), infer("tinynet_a", 192), train("tinynet_a", 192)),
    ),
    Architecture(
        "hardcorenas",
        'Nayman et al. 2021, "HardCoRe-NAS: hard constrained differentiable neural architecture search": A and F.',
        "sgd",
        (train("hardcorenas_a"), infer("hardcorenas_a"), train("hardcorenas_f")),
    ),
    Architecture(
        "mnasnet",
        'Tan et al. 2019, "MnasNet: platform-aware neural architecture search for mobile": B1, and A1 with squeeze '
        "and excitation.",
        "sgd",
        (train("mnasnet_100"), infer("semnasnet_100"), train("semnasnet_100")),
    ),
    Architecture(
        "single-path-nas",
        'Stamoulis et al. 2019, "Single-path NAS: designing hardware-efficient ConvNets in less than 4 hours": the '
        "network for Pixel 1.",
        "sgd",
        (train("spnasnet_100"), infer("spnasnet_100")),
    ),
    Architecture(
        "efficientnet",
        'Tan and Le 2021, "EfficientNetV2: smaller models and faster training": a tiny one.',
        "sgd",
        (train("efficientnetv2_rw_t"), infer("efficientnetv2_rw_t")),
    ),
    Architecture(
        "mobilenet-edgetpu",
        'Akin et al. 2022, "Searching for efficient neural architectures for on-device ML on edge TPUs": the second '
        "version, small.",
        "sgd",
        (train("mobilenet_edgetpu_v2_s"), infer("mobilenet_edgetpu_v2_s")),
    ),
    Architecture(
        "lcnet",
        'Cui et al. 2021, "PP-LCNet: a lightweight CPU convolutional neural network": width 0.5.',
        "sgd",
        (train("lcnet_050"), infer("lcnet_050")),
    ),
    Architecture(
        "ghostnet",
        'Tang et al. 2022, "GhostNetV2: enhance cheap operation with long-range attention"; Liu et al. 2024, '
        '"GhostNetV3: exploring the training strategies for compact models".',
        "sgd",
        (train("ghostnetv2_100"), infer("ghostnetv2_100"), train("ghostnetv3_100")),
    ),
    Architecture(
        "repghost",
        'Chen et al. 2022, "RepGhost: a hardware-efficient ghost module via re-parameterization": before it.',
        "sgd",
        (train("repghostnet_050"), infer("repghostnet_050")),
    ),
    Architecture(
        "mobileone",
        'Vasu et al. 2023, "MobileOne: an improved one millisecond mobile backbone": S0 and S1 before '
        "re-parametrisation.",
        "sgd",
        (train("mobileone_s0"), infer("mobileone_s0"), train("mobileone_s1")),
    ),
    Architecture(
        "repvit",
        'Wang et al. 2024, "RepViT: revisiting mobile CNN from ViT perspective": M1 and M2.3 before '
        "re-parametrisation.",
        "adam",
        (train("repvit_m1"), infer("repvit_m1"), train("repvit_m2_3")),
    ),
    Architecture(
        "rexnet",
        'Han et al. 2021, "Rethinking channel dimensions for efficient model design": ReXNet of width 1.',
        "sgd",
        (train("rexnet_100"), infer("rexnet_100")),
    ),
    Architecture(
        "mobilevit",
        'Mehta and Rastegari 2022, "MobileViT: light-weight, general-purpose, and mobile-friendly vision transformer": '
        "XXS.",
        "adam",
        (train("mobilevit_xxs", 256), infer("mobilevit_xxs", 256)),
    ),
    Architecture(
        "efficientformer",
        'Li et al. 2022, "EfficientFormer: vision transformers at MobileNet speed": L1; Li et al. 2023, "Rethinking '
        'vision transformers for MobileNet size and speed": the second version, S1.',
        "adam",
        (train("efficientformer_l1"), infer("efficientformer_l1"), train("efficientformerv2_s1")),
    ),
    Architecture(
        "edgenext",
        'Maaz et al. 2022, "EdgeNeXt: efficiently amalgamated CNN-transformer architecture for mobile vision '
        'applications": XX-small and base.',
        "adam",
        (train("edgenext_xx_small", 256), infer("edgenext_xx_small", 256), train("edgenext_base", 256)),
    ),
    Architecture(
        "fastvit",
        'Vasu et al. 2023, "FastViT: a fast hybrid vision transformer using structural reparameterization": T8 and '
        "SA12 before it.",
        "adam",
        (train("fastvit_t8", 256), infer("fastvit_t8", 256), train("fastvit_sa12", 256)),
    ),
    Architecture(
        "shvit",
        'Yun and Ro 2024, "SHViT: single-head vision transformer with memory efficient macro design": S1 and S4.',
        "adam",
        (train("shvit_s1"), infer("shvit_s1"), train("shvit_s4", 256)),
    ),
    Architecture(
        "iformer",
        'Zheng 2025, "iFormer: integrating ConvNet and transformer for mobile application": T and M.',
        "adam",
        (train("iformer_t"), infer("iformer_t"), train("iformer_m")),
    ),
    Architecture(
        "lowformer",
        'Nottebaum et al. 2025, "LowFormer: hardware efficient design for convolutional transformer backbones": B0 and '
        "B3.",
        "adam",
        (train("lowformer_b0"), infer("lowformer_b0"), train("lowformer_b3")),
    ),
    Architecture(
        "efficientvim",
        'Lee et al. 2025, "EfficientViM: efficient vision Mamba with hidden state mixer based state space duality": '
        "M1 and M4.",
        "adam",
        (train("efficientvim_m1"), infer("efficientvim_m1"), train("efficientvim_m4", 256)),
    ),
)
# fmt: on

offer(__name__, TABLE)
