/** A GGUF file of a model that knows nothing. The same options give the same bytes. */
export const buildTinyGguf: (options?: {
  readonly seed?: number
  readonly ctx?: number
  readonly template?: "tools" | "chatml" | "none" | (string & {})
  readonly bos?: string
  readonly endBias?: number
  readonly toolBias?: number
  readonly pooling?: "none" | "mean" | "cls" | "last"
}) => Uint8Array
