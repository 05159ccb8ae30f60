"""Reading PTX and the assembler's log; the lines are of Triton's own making. Needs no Triton."""

from __future__ import annotations

import pytest

from labkit.meters.compiled import ptx

TEXT = """
  @%p1 ld.global.v4.b32 { %r1, %r2, %r3, %r4 }, [ %rd1 + 0 ];
  @%p1 ld.global.L1::evict_last.L2::cache_hint.v2.b64 { %rd7, %rd8 }, [ %rd1 + 0 ], %rd9;
  ld.global.b16 %rs1, [%rd1];
  ld.global.nc.f32 %f1, [%rd1];
  ld.volatile.global.u8 %rs1, [%rd1];
  ld.shared.v4.b32 {%r1, %r2, %r3, %r4}, [%r5];
  ld.param.b64 %rd1, [kernel_param_0];
  @%p1 st.global.v4.b32 [ %rd1 + 0 ], { %r1, %r2, %r3, %r4 };
  st.shared.b32 [%r1], %r2;
  cp.async.cg.shared.global [ %r1 + 0 ], [ %rd1 + 0 ], 0x10, %r2;
  cp.async.ca.shared.global [ %r1 + 0 ], [ %rd1 + 0 ], 0x4, %r2;
  cp.async.commit_group;
  wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {%f1}, %rd1, %rd2, 1, 1, 1, 0, 1;
  wgmma.wait_group.sync.aligned 0;
  mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 { %f1 }, { %r1 }, { %r2 }, { %f1 };
"""

PLACED = """
	.loc	1 3 5                           // kernel.py:3:5
	// begin inline asm
	.loc	1 4 9, function_name $L__info_string0, inlined_at 1 8 2 // kernel.py:4:9
	mov.u32 %r1, 0x0;
	.loc	1 5 9, function_name $L__info_string0, inlined_at 1 8 2 // kernel.py:5:9
	@%p1 ld.global.b32 { %r1 }, [ %rd1 + 0 ];
	// end inline asm
	// begin inline asm
	@%p1 ld.global.v2.b32 { %r1, %r2 }, [ %rd1 + 0 ];
	// end inline asm
	.loc	1 6 2                           // kernel.py:6:2
	mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 { %f1 }, { %r1 }, { %r2 }, { %f1 };
	cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], [%r4];
	.file	1 "/a/folder/kernel.py"
"""

LOG = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'kernel' for 'sm_90a'
ptxas info    : Function properties for kernel
    24 bytes stack frame, 20 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 400 bytes cmem[0]
"""


def test_widths_of_global_accesses() -> None:
    loads, stores = ptx.accesses(TEXT)
    assert dict(loads) == {16: 3, 2: 1, 4: 2, 1: 1}
    assert dict(stores) == {16: 1}


def test_matrix_instructions() -> None:
    assert dict(ptx.matrix_instructions(TEXT)) == {
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16": 1,
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32": 1,
    }


def test_instructions_by_their_place() -> None:
    """The further lines of a piece of assembly are not further lines of the source, but the next piece may be there."""
    call = ("kernel.py", 8, 2)
    found = ptx.placed(PLACED)
    assert {site: dict(one.loads) for site, one in found.items()} == {
        (("kernel.py", 4, 9), call): {4: 1},
        (("kernel.py", 5, 9), call): {8: 1},
        (("kernel.py", 6, 2), None): {16: 1},
    }
    assert [one.n_matrix_instructions for one in found.values()] == [0, 0, 1]


def test_resources() -> None:
    assert ptx.resources(LOG) == (255, 20, 16)


def test_a_log_that_says_nothing() -> None:
    with pytest.raises(ValueError, match=r"^the assembler's log names no registers or spills: 'ptxas fatal'$"):
        ptx.resources("ptxas fatal")
