/** The program, with all that commands need of the system. */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Program from "./internal/program.ts"

export const start = (): void => {
  // Nobody may read what is told; that ends nothing.
  process.stderr.on("error", () => {})
  Program.run(NodeServices.layer)
}
