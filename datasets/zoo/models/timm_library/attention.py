"""Networks with attention, alone or among convolutions."""

from __future__ import annotations

from .architecture import Architecture, infer, offer, train

# fmt: off
TABLE = (
    Architecture(
        "levit",
        'Graham et al. 2021, "LeViT: a vision transformer in ConvNet\'s clothing for faster inference": 128.',
        "adam",
        (train("levit_128"), infer("levit_128")),
    ),
    Architecture(
        "metaformer",
        'Yu et al. 2024, "MetaFormer baselines for vision": ConvFormer-S18 and CAFormer-S18.',
        "adam",
        (train("convformer_s18"), infer("caformer_s18"), train("caformer_s18")),
    ),
    Architecture(
        "maxvit",
        'Tu et al. 2022, "MaxViT: multi-axis vision transformer": tiny, and a smaller one with ConvNeXt\'s blocks and '
        "positions from a perceptron.",
        "adam",
        (train("maxxvit_rmlp_nano_rw_256", 256), infer("maxvit_tiny_tf_224"), train("maxvit_tiny_tf_224", batch=16)),
    ),
    Architecture(
        "coatnet",
        'Dai et al. 2021, "CoAtNet: marrying convolution and attention for all data sizes": CoAtNet-0, and a smaller '
        "one with positions from a perceptron.",
        "adam",
        (train("coatnet_0_rw_224"), infer("coatnet_0_rw_224"), train("coatnet_rmlp_nano_rw_224")),
    ),
    Architecture(
        "coat",
        'Xu et al. 2021, "Co-scale conv-attentional image transformers": CoaT-Lite-tiny, and CoaT-tiny with parallel '
        "groups.",
        "adam",
        (train("coat_lite_tiny"), infer("coat_lite_tiny"), train("coat_tiny", batch=16)),
    ),
    Architecture(
        "nest",
        'Zhang et al. 2022, "Nested hierarchical transformer: towards accurate, data-efficient and interpretable '
        'visual understanding": tiny and small.',
        "adam",
        (train("nest_tiny"), infer("nest_tiny"), train("nest_small")),
    ),
    Architecture(
        "twins",
        'Chu et al. 2021, "Twins: revisiting the design of spatial attention in vision transformers": SVT-small and '
        "PCPVT-small.",
        "adam",
        (train("twins_svt_small"), infer("twins_svt_small"), train("twins_pcpvt_small")),
    ),
    Architecture(
        "pvt-v2",
        'Wang et al. 2022, "PVT v2: improved baselines with pyramid vision transformer": B2 with linear '
        "attention.",
        "adam",
        (train("pvt_v2_b2_li"), infer("pvt_v2_b2_li")),
    ),
    Architecture(
        "davit",
        'Ding et al. 2022, "DaViT: dual attention vision transformers": tiny and small.',
        "adam",
        (train("davit_tiny"), infer("davit_tiny"), train("davit_small")),
    ),
    Architecture(
        "crossvit",
        'Chen et al. 2021, "CrossViT: cross-attention multi-scale vision transformer for image classification": 9, and '
        "15 with convolutional patches.",
        "adam",
        (train("crossvit_9_240", 240), infer("crossvit_9_240", 240), train("crossvit_15_dagger_240", 240)),
    ),
    Architecture(
        "xcit",
        'El-Nouby et al. 2021, "XCiT: cross-covariance image transformers": nano-12 and tiny-24.',
        "adam",
        (train("xcit_nano_12_p16_224"), infer("xcit_nano_12_p16_224"), train("xcit_tiny_24_p16_224")),
    ),
    Architecture(
        "visformer",
        'Chen et al. 2021, "Visformer: the vision-friendly transformer": tiny.',
        "adam",
        (train("visformer_tiny"), infer("visformer_tiny")),
    ),
    Architecture(
        "convit",
        'd\'Ascoli et al. 2021, "ConViT: improving vision transformers with soft convolutional inductive biases": '
        "tiny.",
        "adam",
        (train("convit_tiny"), infer("convit_tiny")),
    ),
    Architecture(
        "eva",
        'Fang et al. 2024, "EVA-02: a visual representation for neon genesis": tiny with rotary positions; Sun et al. '
        '2023, "EVA-CLIP: improved training techniques for CLIP at scale": the base image encoder.',
        "adam",
        (train("eva02_tiny_patch14_224"), infer("eva02_tiny_patch14_224"), train("eva02_base_patch16_clip_224")),
    ),
    Architecture(
        "beit",
        'Bao et al. 2022, "BEiT: BERT pre-training of image transformers": base.',
        "adam",
        (train("beit_base_patch16_224"), infer("beit_base_patch16_224")),
    ),
    Architecture(
        "gcvit",
        'Hatamizadeh et al. 2023, "Global context vision transformers": XX-tiny and tiny.',
        "adam",
        (train("gcvit_xxtiny"), infer("gcvit_xxtiny"), train("gcvit_tiny")),
    ),
    Architecture(
        "hiera",
        'Ryali et al. 2023, "Hiera: a hierarchical vision transformer without the bells-and-whistles": base.',
        "adam",
        (train("hiera_base_224"), infer("hiera_base_224")),
    ),
    Architecture(
        "tiny-vit",
        'Wu et al. 2022, "TinyViT: fast pretraining distillation for small vision transformers": 5M.',
        "adam",
        (train("tiny_vit_5m_224"), infer("tiny_vit_5m_224")),
    ),
    Architecture(
        "vitamin",
        'Chen et al. 2024, "ViTamin: designing scalable vision models in the vision-language era": small.',
        "adam",
        (train("vitamin_small_224"), infer("vitamin_small_224")),
    ),
    Architecture(
        "pit",
        'Heo et al. 2021, "Rethinking spatial dimensions of vision transformers": Ti.',
        "adam",
        (train("pit_ti_224"), infer("pit_ti_224")),
    ),
    Architecture(
        "tnt",
        'Han et al. 2021, "Transformer in transformer": small.',
        "adam",
        (train("tnt_s_patch16_224"), infer("tnt_s_patch16_224")),
    ),
    Architecture(
        "volo",
        'Yuan et al. 2022, "VOLO: vision outlooker for visual recognition": D1.',
        "adam",
        (train("volo_d1_224"), infer("volo_d1_224")),
    ),
    Architecture(
        "mvit-v2",
        'Li et al. 2022, "MViTv2: improved multiscale vision transformers for classification and detection": tiny and '
        "small.",
        "adam",
        (train("mvitv2_tiny"), infer("mvitv2_tiny"), train("mvitv2_small")),
    ),
    Architecture(
        "efficientvit",
        'Cai et al. 2023, "EfficientViT: multi-scale linear attention for high-resolution dense prediction": B0 and '
        "B2.",
        "adam",
        (train("efficientvit_b0"), infer("efficientvit_b0"), train("efficientvit_b2")),
    ),
    Architecture(
        "cascaded-group-attention",
        'Liu et al. 2023, "EfficientViT: memory efficient vision transformer with cascaded group attention": M0 and '
        "M5.",
        "adam",
        (train("efficientvit_m0"), infer("efficientvit_m0"), train("efficientvit_m5")),
    ),
    Architecture(
        "next-vit",
        'Li et al. 2022, "Next-ViT: next generation vision transformer for efficient deployment in realistic '
        'industrial scenarios": small and base.',
        "adam",
        (train("nextvit_small"), infer("nextvit_small"), train("nextvit_base")),
    ),
    Architecture(
        "lambda-network",
        'Bello 2021, "LambdaNetworks: modeling long-range interactions without attention": on ResNet-26 and 50.',
        "sgd",
        (train("lambda_resnet26t", 256), infer("lambda_resnet26t", 256), train("lambda_resnet50ts", 256)),
    ),
    Architecture(
        "halonet",
        'Vaswani et al. 2021, "Scaling local self-attention for parameter efficient visual backbones": on ResNet-26 '
        "and 50.",
        "sgd",
        (train("halonet26t", 256), infer("halonet26t", 256), train("halonet50ts", 256)),
    ),
    Architecture(
        "botnet",
        'Srinivas et al. 2021, "Bottleneck transformers for visual recognition": on ResNet-26 and 50.',
        "sgd",
        (train("botnet26t_256", 256), infer("botnet26t_256", 256), train("botnet50ts_256", 256)),
    ),
    Architecture(
        "vit",
        'Dosovitskiy et al. 2021, "An image is worth 16x16 words": the hybrid R26+S/32; Touvron et al. 2021, "Training '
        'data-efficient image transformers and distillation through attention": DeiT-Ti with a distillation token.',
        "adam",
        (train("vit_small_r26_s32_224"), infer("deit_tiny_distilled_patch16_224")),
    ),
)
# fmt: on

offer(__name__, TABLE)
