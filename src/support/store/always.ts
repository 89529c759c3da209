/** The key of a permanent approval. */

/**
 * Makes the key of the calls that a permanent approval covers: calls of a tool with an unchanged definition, alike to
 * each other, under the same rule. `by` is the source of the question.
 */
export const approvalKey = (
  by: string,
  rule: string,
  call: { readonly name: string; readonly toolDigest: () => string },
  likeness: string
): string => JSON.stringify([by, rule, call.name, call.toolDigest(), likeness])
