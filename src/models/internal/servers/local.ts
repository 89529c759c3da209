/** Servers on a machine of one's own, which hold any model: what it can is what its owner says. */
import { pictures, type Server, type Ways } from "./Server.ts"

/** They write prompts by the model's own template, and pass on to it what it is to know. */
const own: Ways = { ...pictures, thinking: "template" }

const local = (name: string, port: number, ways: Ways): Server => ({
  name,
  baseURL: `http://localhost:${port}/v1`,
  ways,
  models: {}
})

export const lmStudio = local("lm-studio", 1234, { ...own, thinking: "effort" })

export const llamaServer = local("llama-server", 8080, own)

export const vllm = local("vllm", 8000, own)
