"""Which graphs of speech networks the zoo has."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ..registry import definition
from .sound import ConvTasNet, ListenAttendSpell, Tacotron2
from .speech import Conformer, DeepSpeech2, Jasper
from .workload import Entry, ids, reals, workloads


@definition(family="jasper", source="own", licence="Apache-2.0")
def jasper() -> Iterator[Entry]:
    """Li et al. 2019, "Jasper: an end-to-end convolutional neural acoustic model": 5 blocks of 3 and 10 of 5;
    letters are aligned with frames beforehand.
    """
    small = ((256, 11), (384, 13), (512, 17), (640, 21), (768, 25))
    for name, blocks, repeats in (("5x3", small, 3), ("10x5", tuple(b for b in small for _ in range(2)), 5)):
        yield from workloads(
            f"jasper-{name}",
            partial(Jasper, blocks, repeats, separable=False),
            inputs=(reals(16, 64, 800),),
            targets=(ids(29, 16, 400),),
            batch=16,
            blocks=len(blocks),
            repeats=repeats,
        )


@definition(family="quartznet", source="own", licence="Apache-2.0")
def quartznet() -> Iterator[Entry]:
    """Kriman et al. 2020, "QuartzNet: deep automatic speech recognition with 1D time-channel separable
    convolutions": 5x5 and 15x5; letters are aligned with frames beforehand.
    """
    kinds = ((256, 33), (256, 39), (512, 51), (512, 63), (512, 75))
    for repeats in (1, 3):
        blocks = tuple(kind for kind in kinds for _ in range(repeats))
        yield from workloads(
            f"quartznet-{5 * repeats}x5",
            partial(Jasper, blocks, 5, separable=True),
            inputs=(reals(16, 64, 800),),
            targets=(ids(29, 16, 400),),
            batch=16,
            blocks=len(blocks),
        )


@definition(family="deep-speech-2", source="own", licence="Apache-2.0")
def deep_speech_2() -> Iterator[Entry]:
    """Amodei et al. 2016, "Deep Speech 2: end-to-end speech recognition in English and Mandarin": gated recurrent
    layers over 75 frames; letters are aligned with frames beforehand.
    """
    for layers in (2, 5):
        yield from workloads(
            f"deep-speech-2-{layers}l",
            partial(DeepSpeech2, layers, 800),
            inputs=(reals(16, 1, 160, 150),),
            targets=(ids(29, 16, 75),),
            batch=16,
            layers=layers,
            frames=75,
        )


@definition(family="conformer", source="own", licence="Apache-2.0")
def conformer() -> Iterator[Entry]:
    """Gulati et al. 2020, "Conformer: convolution-augmented transformer for speech recognition": small and medium
    encoders with absolute positions; word pieces are aligned with frames beforehand; dropout left out.
    """
    for name, blocks, width in (("s", 16, 144), ("m-short", 8, 256)):
        yield from workloads(
            f"conformer-{name}",
            partial(Conformer, blocks, width, 4),
            inputs=(reals(8, 1, 800, 80),),
            targets=(ids(1024, 8, 200),),
            batch=8,
            optimizer="adam",
            blocks=blocks,
            width=width,
        )


@definition(family="las", source="own", licence="Apache-2.0")
def listen_attend_spell() -> Iterator[Entry]:
    """Chan et al. 2016, "Listen, attend and spell": a pyramid over 80 and 160 frames."""
    for layers, frames, letters in ((3, 80, 20), (4, 160, 40)):
        yield from workloads(
            f"las-{layers}l",
            partial(ListenAttendSpell, layers, 256),
            inputs=(reals(32, frames, 40), ids(30, 32, letters)),
            targets=(ids(30, 32, letters),),
            batch=32,
            layers=layers,
            frames=frames,
            letters=letters,
        )


@definition(family="tacotron-2", source="own", licence="Apache-2.0")
def tacotron_2() -> Iterator[Entry]:
    """Shen et al. 2018, "Natural TTS synthesis by conditioning WaveNet on mel spectrogram predictions"; true frames
    are fed to the decoder; dropout left out.
    """
    for letters, frames in ((30, 60), (80, 240)):
        yield from workloads(
            f"tacotron-2-{frames}",
            partial(Tacotron2, 148),
            inputs=(ids(148, 16, letters), reals(16, frames, 80), reals(16, frames)),
            batch=16,
            modes=("train",),
            letters=letters,
            frames=frames,
        )


@definition(family="conv-tasnet", source="own", licence="Apache-2.0")
def conv_tasnet() -> Iterator[Entry]:
    """Luo and Mesgarani 2019, "Conv-TasNet: surpassing ideal time-frequency magnitude masking for speech
    separation": 3 x 8 blocks, and 1 x 6; speakers in a fixed order.
    """
    for repeats, blocks in ((1, 6), (3, 8)):
        yield from workloads(
            f"conv-tasnet-{repeats}x{blocks}",
            partial(ConvTasNet, repeats, blocks),
            inputs=(reals(4, 1, 16000),),
            targets=(reals(4, 2, 16000),),
            batch=4,
            repeats=repeats,
            blocks=blocks,
        )
