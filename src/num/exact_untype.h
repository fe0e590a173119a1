/* SPDX-License-Identifier: Apache-2.0
 * Ends what exact_types.h began, so that the next width can begin.
 */
#undef EM_PASTE2
#undef EM_PASTE
#undef EM
#undef EM_ALWAYS
#undef EM_FLOAT
#undef EM_INT
#undef EM_UINT
#undef EM_BITS
#undef EM_FROM_BITS
#undef EM_AS_INT
#undef EM_AS_UINT
#undef EM_TO_INT
#undef EM_TO_FLOAT
#undef EM_UINT_TO_FLOAT
#undef EM_MUL_HI
#undef EM_ROUGH_DIVIDE
#undef EM_ROUGH_SQRT
#undef EM_F
#undef EM_I
#undef EM_U
