"""Convolutional networks."""

from __future__ import annotations

from .architecture import Architecture, infer, offer, train

# fmt: off
TABLE = (
    Architecture(
        "regnet",
        'Radosavovic et al. 2020, "Designing network design spaces": RegNetX-200MF and RegNetY-800MF; Dollar et al. '
        '2021, "Fast and accurate model scaling": RegNetZ-B16.',
        "sgd",
        (train("regnetx_002"), infer("regnetx_002"), train("regnety_008"), train("regnetz_b16")),
    ),
    Architecture(
        "sknet",
        'Li et al. 2019, "Selective kernel networks": on ResNet-18 and 50.',
        "sgd",
        (train("skresnet18"), infer("skresnet50"), train("skresnet50")),
    ),
    Architecture(
        "vovnet",
        'Lee et al. 2019, "An energy and GPU-computation efficient backbone network for real-time object detection": '
        'VoVNet-39; Lee and Park 2020, "CenterMask: real-time anchor-free instance segmentation": the second version, '
        "with depthwise convolutions.",
        "sgd",
        (train("vovnet39a"), infer("vovnet39a"), train("ese_vovnet19b_dw")),
    ),
    Architecture(
        "cspnet",
        'Wang et al. 2020, "CSPNet: a new backbone that can enhance learning capability of CNN": CSPResNet-50 and '
        "CSPDarknet-53.",
        "sgd",
        (train("cspresnet50", 256), infer("cspresnet50", 256), train("cspdarknet53", 256)),
    ),
    Architecture(
        "darknet",
        'Redmon and Farhadi 2018, "YOLOv3: an incremental improvement": Darknet-53 and one of 17 layers.',
        "sgd",
        (train("darknet17", 256), infer("darknet53", 256), train("darknet53", 256)),
    ),
    Architecture(
        "cspnext",
        'Lyu et al. 2022, "RTMDet: an empirical study of designing real-time object detectors": its backbone.',
        "sgd",
        (train("cspnext_tiny"), infer("cspnext_tiny"), train("cspnext_m")),
    ),
    Architecture(
        "nfnet",
        'Brock et al. 2021, "High-performance large-scale image recognition without normalization": NFNet-F0, and the '
        'light L0 with efficient channel attention; Brock et al. 2021, "Characterizing signal propagation to close '
        'the performance gap in unnormalized ResNets": NF-ResNet-50.',
        "sgd",
        (train("nf_resnet50", 256), infer("nf_resnet50", 256), train("dm_nfnet_f0", 192), train("eca_nfnet_l0")),
    ),
    Architecture(
        "ecanet",
        'Wang et al. 2020, "ECA-Net: efficient channel attention for deep convolutional neural networks": on ResNets '
        "with tiered stems.",
        "sgd",
        (train("ecaresnet26t", 256), infer("ecaresnet26t", 256), train("ecaresnet50d")),
    ),
    Architecture(
        "gcnet",
        'Cao et al. 2019, "GCNet: non-local networks meet squeeze-excitation networks and beyond": on ResNet-33 and '
        "50.",
        "sgd",
        (train("gcresnet33ts", 256), infer("gcresnet33ts", 256), train("gcresnet50t", 256)),
    ),
    Architecture(
        "bilinear-attention",
        'Gao et al. 2021, "Bilinear attention networks for visual recognition": on ResNeXt-26.',
        "sgd",
        (train("bat_resnext26ts", 256), infer("bat_resnext26ts", 256)),
    ),
    Architecture(
        "tresnet",
        'Ridnik et al. 2021, "TResNet: high performance GPU-dedicated architecture": M and L.',
        "sgd",
        (train("tresnet_m"), infer("tresnet_m"), train("tresnet_l")),
    ),
    Architecture(
        "hgnet",
        'Cui et al. 2021, "Beyond self-supervision: a simple yet effective network distillation alternative to improve '
        'backbones": PP-HGNet-tiny.',
        "sgd",
        (train("hgnet_tiny"), infer("hgnet_tiny")),
    ),
    Architecture(
        "gernet",
        'Lin et al. 2020, "Neural architecture design for GPU-efficient networks": small and large.',
        "sgd",
        (train("gernet_s"), infer("gernet_s"), train("gernet_l", 256)),
    ),
    Architecture(
        "xception",
        'Chen et al. 2018, "Encoder-decoder with atrous separable convolution for semantic image segmentation": the '
        "aligned Xception-41 and 65.",
        "sgd",
        (train("xception41", 299), infer("xception41", 299), train("xception65", 299)),
    ),
    Architecture(
        "convnext",
        'Woo et al. 2023, "ConvNeXt V2: co-designing and scaling ConvNets with masked autoencoders": atto, and nano.',
        "adam",
        (train("convnextv2_atto"), infer("convnextv2_nano")),
    ),
    Architecture(
        "inception-next",
        'Yu et al. 2024, "InceptionNeXt: when Inception meets ConvNeXt": atto and tiny.',
        "adam",
        (train("inception_next_atto"), infer("inception_next_atto"), train("inception_next_tiny")),
    ),
    Architecture(
        "focalnet",
        'Yang et al. 2022, "Focal modulation networks": small with three focal levels.',
        "adam",
        (train("focalnet_small_lrf"), infer("focalnet_small_lrf")),
    ),
    Architecture(
        "mambaout",
        'Yu and Wang 2025, "MambaOut: do we really need Mamba for vision?": femto and small.',
        "adam",
        (train("mambaout_femto"), infer("mambaout_femto"), train("mambaout_small")),
    ),
    Architecture(
        "fasternet",
        'Chen et al. 2023, "Run, don\'t walk: chasing higher FLOPS for faster neural networks": T0 and S.',
        "adam",
        (train("fasternet_t0"), infer("fasternet_t0"), train("fasternet_s")),
    ),
    Architecture(
        "starnet",
        'Ma et al. 2024, "Rewrite the stars": S1 and S4.',
        "adam",
        (train("starnet_s1"), infer("starnet_s4"), train("starnet_s4")),
    ),
    Architecture(
        "rdnet",
        'Kim et al. 2024, "DenseNets reloaded: paradigm shift beyond ResNets and ViTs": tiny and small.',
        "adam",
        (train("rdnet_tiny"), infer("rdnet_tiny"), train("rdnet_small")),
    ),
)
# fmt: on

offer(__name__, TABLE)
