/** Commands in bubblewrap are held to the suite of commands, and their files to a part of the suite of backends. */
import * as OsSandbox from "effect-deepagents/backends/OsSandbox"
import { BackendConformance } from "effect-deepagents/testing/conformance"
import { holds, inFolder, onDiskAgain } from "../conformance.ts"
import { describeIsolated } from "./box.ts"

const secret = "CONFORMANCE_SECRET"
process.env[secret] = "must not be seen"

const layer = inFolder((root) => OsSandbox.layer({ root, ripgrep: false }))

describeIsolated.concurrent("in bubblewrap", () => {
  // The files belong to `FilesystemBackend`, which passes all of it.
  const files = BackendConformance.suite({ layer, ...onDiskAgain }).filter((_, index) => index % 8 === 0)
  holds("files", files)
  holds("commands", BackendConformance.sandboxSuite({ layer, secret, processes: true, streams: true }))
})
