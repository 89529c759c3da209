/** Chooses the codec of a model by its chat template. */
import type { Codec } from "./Codec.ts"
import { gemma } from "./gemma.ts"
import { hermes } from "./hermes.ts"
import { lfm2 } from "./lfm2.ts"
import { qwenXml } from "./qwenXml.ts"

/** The way a model is spoken to: by a codec of this library, by node-llama-cpp's chat wrapper, or by whichever fits. */
export type CodecChoice = "auto" | "wrapper" | Codec["name"]

const codecs: { readonly [Name in Codec["name"]]: Codec } = { lfm2, hermes, "qwen-xml": qwenXml, gemma }

/**
 * The codec, or `undefined` for the chat wrapper. By itself it takes a codec for the families whose notation a wrapper
 * can't constrain; JSON calls are left to the wrapper, whose grammar keeps small models on the right path.
 */
export const choose = (choice: CodecChoice, template: string): Codec | undefined => {
  if (choice === "wrapper") return undefined
  if (choice !== "auto") return codecs[choice]
  if (template.includes("<|tool_call_start|>") || template.includes("<|tool_list_start|>")) return lfm2
  if (template.includes("<|tool_call>")) return gemma
  return template.includes("<function=") && template.includes("<parameter=") ? qwenXml : undefined
}
