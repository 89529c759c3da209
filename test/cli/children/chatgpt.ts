/** Gives the token of the plan, as one of several programs: `node chatgpt.ts <folder> <issuer>`. */
import { NodeServices } from "@effect/platform-node"
import { Effect, Redacted } from "effect"
import { OpenAi, planToken } from "../../../src/cli/internal/config/chatgpt.ts"

const [data = "", issuer = ""] = process.argv.slice(2)

const token = planToken({ data, config: data, project: data }).pipe(
  Effect.provideService(OpenAi, { issuer, api: `${issuer}/v1` }),
  Effect.provide(NodeServices.layer)
)

process.stdout.write(Redacted.value(await Effect.runPromise(token)))
