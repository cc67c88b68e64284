"""Recognition and synthesis of speech, codecs and classification of sounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor
from torch.nn import functional as F

from ..workload import ids, reals
from .architecture import Architecture, infer, offer, train
from .rows import depths, sound

LAYERS = "num_hidden_layers"
SECONDS = {"input_values": reals(2, 32000)}


def contrasted_sounds(output: Any, targets: Mapping[str, Tensor]) -> Tensor:
    """Cross-entropy of matching sounds and texts, in both directions."""
    pairs = targets["pairs"]
    return (
        F.cross_entropy(output.logits_per_audio, pairs) + F.cross_entropy(output.logits_per_text, pairs)
    ) / 2


def reconstructed(output: Any, targets: Mapping[str, Tensor]) -> Tensor:
    """Absolute differences of the sound that comes out, and the codebooks' losses."""
    made = output.audio_values
    return F.l1_loss(made, targets["audio"][:, : made.shape[-1]]) + output.loss.mean()


def spoken(output: Any, targets: Mapping[str, Tensor]) -> Tensor:
    """Absolute differences of waveforms."""
    made = output.waveforms
    return F.l1_loss(made, targets["waveforms"][:, : made.shape[-1]])


def spectrogram(output: Any, targets: Mapping[str, Tensor]) -> Tensor:
    """Absolute differences of spectrograms."""
    return F.l1_loss(output.spectrogram, targets["spectrogram"])


ENCODERS = (
    sound(
        "wav2vec2",
        "Wav2Vec2ForCTC",
        'Baevski et al. 2020, "wav2vec 2.0: a framework for self-supervised learning of speech representations", '
        "fine-tuned.",
        depths(LAYERS, train=(4, 12), infer=(24,)),
        letters=32,
        frames=99,
        inputs=SECONDS,
    ),
    sound(
        "wavlm",
        "WavLMForCTC",
        'Chen et al. 2022, "WavLM: large-scale self-supervised pre-training for full stack speech processing": gated '
        "relative positions, fine-tuned.",
        depths(LAYERS, train=(4, 12), infer=(8,)),
        letters=32,
        frames=99,
        inputs=SECONDS,
    ),
    sound(
        "sew",
        "SEWForCTC",
        'Wu et al. 2022, "Performance-efficiency trade-offs in unsupervised pre-training for speech recognition": '
        "squeezed wav2vec 2.0, fine-tuned.",
        depths(LAYERS, train=(6, 12), infer=(10,)),
        letters=32,
        frames=99,
        inputs=SECONDS,
    ),
    sound(
        "sew-d",
        "SEWDForCTC",
        'Wu et al. 2022, "Performance-efficiency trade-offs in unsupervised pre-training for speech recognition": with '
        "disentangled attention, fine-tuned.",
        depths(LAYERS, train=(4, 10), infer=(6,)),
        letters=32,
        frames=99,
        inputs=SECONDS,
    ),
    sound(
        "data2vec-audio",
        "Data2VecAudioForCTC",
        'Baevski et al. 2022, "data2vec: a general framework for self-supervised learning in speech, vision and '
        'language", fine-tuned.',
        depths(LAYERS, train=(5, 10), infer=(16,)),
        letters=32,
        frames=99,
        inputs=SECONDS,
        optimizer="adam",
    ),
    sound(
        "wav2vec2-bert",
        "Wav2Vec2BertForCTC",
        'Seamless Communication 2023, "Seamless: multilingual expressive and streaming speech translation": '
        "w2v-BERT 2.0, fine-tuned.",
        depths(LAYERS, train=(4, 10), infer=(6,)),
        letters=32,
        frames=200,
        inputs={"input_features": reals(2, 200, 160)},
    ),
    sound(
        "wav2vec2-conformer",
        "Wav2Vec2ConformerForCTC",
        'Wang et al. 2020, "fairseq S2T: fast speech-to-text modeling with fairseq": wav2vec 2.0 with conformers and '
        "relative positions, fine-tuned.",
        depths(LAYERS, train=(4, 10), infer=(6,)),
        letters=32,
        frames=99,
        inputs=SECONDS,
        position_embeddings_type="relative",
    ),
    sound(
        "fast-conformer",
        "ParakeetForCTC",
        'Rekesh et al. 2023, "Fast Conformer with linearly scalable attention for efficient speech recognition", as '
        "Parakeet.",
        depths("encoder_config.num_hidden_layers", train=(4, 10), infer=(6,)),
        letters=1025,
        frames=50,
        inputs={"input_features": reals(2, 400, 80)},
    ),
    Architecture(
        "ast",
        "ASTForAudioClassification",
        'Gong et al. 2021, "AST: audio spectrogram transformer": 527 kinds of sounds.',
        inputs={"input_values": reals(2, 1024, 128)},
        targets={"labels": ids(527, 2)},
        sizes=depths(LAYERS, train=(4, 12), infer=(8,)),
        optimizer="adam",
        settings={"num_labels": 527},
    ),
    Architecture(
        "clap",
        "ClapModel",
        'Wu et al. 2023, "Large-scale contrastive language-audio pretraining with feature fusion and '
        'keyword-to-caption augmentation": a Swin transformer of sounds without fusion.',
        inputs={"input_ids": ids(50265, 4, 77), "input_features": reals(4, 1, 1001, 64)},
        targets={"pairs": ids(4, 4)},
        loss=contrasted_sounds,
        sizes=(
            train("6l", text_config={"num_hidden_layers": 6}, audio_config={"depths": [2, 2, 2, 2]}),
            infer("12l", text_config={"num_hidden_layers": 12}, audio_config={"depths": [2, 2, 6, 2]}),
        ),
        settings={"audio_config": {"enable_fusion": False}},
    ),
)

RECOGNIZERS = (
    Architecture(
        "whisper",
        "WhisperForConditionalGeneration",
        'Radford et al. 2023, "Robust speech recognition via large-scale weak supervision": tiny, base and small.',
        inputs={"input_features": reals(1, 80, 3000), "decoder_input_ids": ids(51865, 1, 64)},
        targets={"labels": ids(51865, 1, 64)},
        sizes=(
            train("tiny", d_model=384, encoder_attention_heads=6, decoder_attention_heads=6),
            train(
                "small",
                d_model=768,
                encoder_layers=12,
                decoder_layers=12,
                encoder_attention_heads=12,
                decoder_attention_heads=12,
                encoder_ffn_dim=3072,
                decoder_ffn_dim=3072,
            ),
            infer(
                "base",
                d_model=512,
                encoder_layers=6,
                decoder_layers=6,
                encoder_attention_heads=8,
                decoder_attention_heads=8,
                encoder_ffn_dim=2048,
                decoder_ffn_dim=2048,
            ),
        ),
    ),
    Architecture(
        "moonshine",
        "MoonshineForConditionalGeneration",
        'Jeffries et al. 2024, "Moonshine: speech recognition for live transcription and voice commands": tiny and '
        "base.",
        inputs={"input_values": reals(2, 48000), "decoder_input_ids": ids(32768, 2, 32)},
        targets={"labels": ids(32768, 2, 32)},
        sizes=(*depths("encoder_num_hidden_layers", "decoder_num_hidden_layers", train=(3, 6), infer=(8,)),),
    ),
    Architecture(
        "speech-to-text",
        "Speech2TextForConditionalGeneration",
        'Wang et al. 2020, "fairseq S2T: fast speech-to-text modeling with fairseq": small.',
        inputs={"input_features": reals(2, 400, 80), "decoder_input_ids": ids(10000, 2, 50)},
        targets={"labels": ids(10000, 2, 50)},
        sizes=(
            train("6l", encoder_layers=6, decoder_layers=3),
            train("12l", encoder_layers=12, decoder_layers=6),
            infer("9l", encoder_layers=9, decoder_layers=4),
        ),
        optimizer="adam",
    ),
    Architecture(
        "seamless-m4t",
        "SeamlessM4TForSpeechToText",
        'Seamless Communication 2023, "SeamlessM4T: massively multilingual & multimodal machine translation".',
        inputs={"input_features": reals(1, 200, 160), "decoder_input_ids": ids(256102, 1, 40)},
        targets={"labels": ids(256102, 1, 40)},
        sizes=depths("speech_encoder_layers", "decoder_layers", train=(3, 6), infer=(4,)),
    ),
    Architecture(
        "seamless-m4t-v2",
        "SeamlessM4Tv2ForSpeechToText",
        'Seamless Communication 2023, "Seamless: multilingual expressive and streaming speech translation": version 2.',
        inputs={"input_features": reals(1, 200, 160), "decoder_input_ids": ids(256102, 1, 40)},
        targets={"labels": ids(256102, 1, 40)},
        sizes=depths("speech_encoder_layers", "decoder_layers", train=(3, 7), infer=(5,)),
    ),
)

SYNTHESIS = (
    Architecture(
        "speecht5",
        "SpeechT5ForTextToSpeech",
        'Ao et al. 2022, "SpeechT5: unified-modal encoder-decoder pre-training for spoken language processing": speech '
        "from text.",
        inputs={
            "input_ids": ids(81, 2, 64),
            "decoder_input_values": reals(2, 100, 80),
            "speaker_embeddings": reals(2, 512),
        },
        targets={"spectrogram": reals(2, 200, 80)},
        loss=spectrogram,
        sizes=(
            train("4l", encoder_layers=4, decoder_layers=2),
            train("12l", encoder_layers=12, decoder_layers=6),
            infer("8l", encoder_layers=8, decoder_layers=4),
        ),
        fixed={"use_cache": False},
    ),
    Architecture(
        "musicgen",
        "MusicgenForCausalLM",
        'Copet et al. 2023, "Simple and controllable music generation": '
        "the decoder of four codebooks, which reads 32 vectors of the text.",
        inputs={"encoder_hidden_states": reals(2, 32, 1024), "input_ids": ids(2048, 8, 128)},
        targets={"labels": ids(2048, 2, 128, 4)},
        sizes=depths(LAYERS, train=(4, 12), infer=(8,)),
    ),
    Architecture(
        "dac",
        "DacModel",
        'Kumar et al. 2023, "High-fidelity audio compression with improved RVQGAN".',
        inputs={"input_values": reals(2, 1, 16384)},
        targets={"audio": reals(2, 16384)},
        loss=reconstructed,
        sizes=(
            train("9q"),
            infer("9q"),
            train(
                "4q",
                n_codebooks=4,
                encoder_hidden_size=32,
                downsampling_ratios=[4, 8, 8],
                upsampling_ratios=[8, 8, 4],
            ),
        ),
    ),
    Architecture(
        "univnet",
        "UnivNetModel",
        'Jang et al. 2021, "UnivNet: a neural vocoder with multi-resolution spectrogram discriminators for '
        'high-fidelity waveform generation": the generator.',
        inputs={"input_features": reals(2, 64, 100), "noise_sequence": reals(2, 64, 64)},
        targets={"waveforms": reals(2, 16384)},
        loss=spoken,
        sizes=(
            train("c32"),
            infer("c32"),
            train("c16", model_hidden_channels=16, kernel_predictor_num_blocks=2),
        ),
    ),
)


offer(__name__, (*ENCODERS, *RECOGNIZERS, *SYNTHESIS))
