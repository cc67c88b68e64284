"""Which graphs of generative networks the zoo has."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ..registry import definition
from .autoencoders import VQVAE, DiffusionUNet, LadderVAE
from .generative import DCGAN, Flow, StyleGAN2
from .workload import Entry, ids, reals, workloads


@definition(family="dcgan", source="own", licence="Apache-2.0")
def dcgan() -> Iterator[Entry]:
    """Radford et al. 2016, "Unsupervised representation learning with deep convolutional generative adversarial
    networks": both losses in one step.
    """
    for levels, size in ((4, 64), (6, 256)):
        yield from workloads(
            f"dcgan-{size}",
            partial(DCGAN, levels, 64 if levels == 4 else 32),
            inputs=(reals(64, 100),),
            targets=(reals(64, 3, size, size),),
            batch=64,
            modes=("train",),
            image=size,
        )


@definition(family="stylegan2", source="own", licence="Apache-2.0")
def stylegan2() -> Iterator[Entry]:
    """Karras et al. 2020, "Analyzing and improving the image quality of StyleGAN": both losses in one step, without
    noise inputs, filters of enlarging and regularisation.
    """
    for size, channels in ((64, 64), (256, 32)):
        yield from workloads(
            f"stylegan2-{size}",
            partial(StyleGAN2, size, channels),
            inputs=(reals(8, 512),),
            targets=(reals(8, 3, size, size),),
            batch=8,
            image=size,
        )


@definition(family="glow", source="own", licence="Apache-2.0")
def glow() -> Iterator[Entry]:
    """Kingma and Dhariwal 2018, "Glow: generative flow with invertible 1x1 convolutions": 3 levels of 4, 8 and 32
    steps, the convolutions in their LU form.
    """
    for steps in (4, 8, 32):
        yield from workloads(
            f"glow-3x{steps}",
            partial(Flow, 3, steps, 512, mixes=True),
            inputs=(reals(16, 3, 32, 32),),
            batch=16,
            optimizer="adam",
            levels=3,
            steps=steps,
        )


@definition(family="realnvp", source="own", licence="Apache-2.0")
def realnvp() -> Iterator[Entry]:
    """Dinh et al. 2017, "Density estimation using real NVP": couplings that swap halves of the channels, with
    activation norms.
    """
    for levels, steps in ((2, 6), (4, 12)):
        yield from workloads(
            f"realnvp-{levels}x{steps}",
            partial(Flow, levels, steps, 128, mixes=False),
            inputs=(reals(32, 3, 64, 64),),
            batch=32,
            levels=levels,
            steps=steps,
        )


@definition(family="vdvae", source="own", licence="Apache-2.0")
def ladder_vae() -> Iterator[Entry]:
    """Child 2021, "Very deep VAEs generalize autoregressive models and can outperform them on images": a latent
    group per decoder block; absolute error in the place of a mixture of logistics.
    """
    for blocks in ((2, 2, 2, 2), (8, 6, 4, 3)):
        yield from workloads(
            f"vdvae-{sum(blocks)}",
            partial(LadderVAE, blocks, 192),
            inputs=(reals(16, 3, 32, 32), reals(16, 16 * sum(blocks), 32, 32)),
            batch=16,
            blocks=list(blocks),
        )


@definition(family="vq-vae", source="own", licence="Apache-2.0")
def vq_vae() -> Iterator[Entry]:
    """Van den Oord et al. 2017, "Neural discrete representation learning"."""
    for levels, blocks in ((2, 2), (3, 8)):
        yield from workloads(
            f"vq-vae-{levels}x{blocks}",
            partial(VQVAE, levels, blocks),
            inputs=(reals(32, 3, 128, 128),),
            batch=32,
            modes=("train",),
            levels=levels,
            blocks=blocks,
        )


@definition(family="ddpm", source="own", licence="Apache-2.0")
def diffusion() -> Iterator[Entry]:
    """Ho et al. 2020, "Denoising diffusion probabilistic models": the U-Net for 32 x 32 images, and a deeper one
    for 64 x 64.
    """
    for name, size, multiples, blocks, attention in (
        ("32", 32, (1, 2, 2, 2), 2, (1,)),
        ("64", 64, (1, 2, 3, 4, 4), 3, (2, 3)),
    ):
        yield from workloads(
            f"ddpm-{name}",
            partial(DiffusionUNet, 128, multiples, blocks, attention),
            inputs=(reals(8, 3, size, size), ids(1000, 8)),
            targets=(reals(8, 3, size, size),),
            batch=8,
            optimizer="adam",
            image=size,
            multiples=list(multiples),
            blocks=blocks,
        )
