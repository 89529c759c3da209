/**
 * The files that the demo's agents see: a folder that they may read, and one beside it that they may write.
 */
import { Layer } from "effect"
import { CompositeBackend, MemoryBackend, Permissions } from "effect-deepagents/backends"
import * as FilesystemBackend from "effect-deepagents/backends/FilesystemBackend"

/** Where the agents write, as they see it. */
export const outputRoute = "/output"

/**
 * `root` is read, but for hidden files (`.env`, `.git`) and dependencies; `output` is written. What the library puts away
 * by itself (large results, what was summarised) stays in memory. Nothing leads out of these, and a path that is denied
 * is not there.
 */
export const workspace = (root: string, output: string) =>
  CompositeBackend.layer({
    default: Permissions.layer({
      rules: [
        { operations: ["read"], paths: ["/**/.*", "/**/node_modules", "/**/dist"], mode: "deny" },
        { operations: ["read"], paths: ["/**"], mode: "allow" }
      ],
      default: "deny"
    }).pipe(Layer.provide(FilesystemBackend.layer({ root }))),
    routes: {
      [outputRoute]: FilesystemBackend.layer({ root: output }),
      "/large_results": MemoryBackend.layer(),
      "/conversation_history": MemoryBackend.layer()
    }
  })
