/** The key of an approval for good. */

/**
 * Makes the key of the calls that an approval for good covers: those of a tool, as long as it promises the same, that a
 * rule asks about and that are alike to it. `by` is who asks.
 */
export const approvalKey = (
  by: string,
  rule: string,
  call: { readonly name: string; readonly toolDigest: () => string },
  likeness: string
): string => JSON.stringify([by, rule, call.name, call.toolDigest(), likeness])
