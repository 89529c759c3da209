/**
 * The architecture, as import rules: `npm run arch`. Imports point inward only.
 */

/** From the inside out. A folder imports itself and folders of inner rings; siblings talk through services of core. */
const rings = [
  ["support"],
  ["core"],
  ["models", "backends", "middleware", "profiles", "sessions", "stores"],
  ["deep", "testing", "net", "documents"],
  ["web", "workspace", "connect", "mcp", "durable", "code", "patterns", "evals", "rag"],
  ["rules", "view"],
  ["agents"],
  ["server", "acp"],
  ["cli", "page"]
]

const folders = rings.flat()

const ringRules = rings.flatMap((ring, index) =>
  ring.map((folder) => {
    const reachable = [folder, ...rings.slice(0, index).flat()]
    return {
      name: `inward-only-${folder}`,
      comment: `src/${folder} may import only src/{${reachable.join(",")}}.`,
      severity: "error",
      from: { path: `^src/${folder}/` },
      to: { path: "^src/", pathNot: `^src/(${reachable.join("|")})/` }
    }
  })
)

export default {
  forbidden: [
    ...ringRules,
    {
      name: "no-foreign-internals",
      comment: "src/X/internal/ (and core/loop/) is of src/X: what another folder needs goes to support, or is public.",
      severity: "error",
      from: { path: "^src/([^/]+)/" },
      to: { path: "^src/.+/(internal|loop)/", pathNot: "^src/$1/" }
    },
    {
      name: "known-folders",
      comment: "A new folder of src/ must be given a ring in .dependency-cruiser.mjs.",
      severity: "error",
      from: { path: "^src/[^/]+/", pathNot: `^src/(${folders.join("|")})/` },
      to: {}
    },
    {
      name: "barrel-of-core",
      comment: "src/index.ts re-exports core and nothing else.",
      severity: "error",
      from: { path: "^src/index[.]ts$" },
      to: { pathNot: "^src/core/" }
    },
    {
      name: "core-imports-effect-only",
      comment: "src/core may import itself and stable Effect modules (effect/Effect): no node:*, no SDK, no effect/ai.",
      severity: "error",
      from: { path: "^src/core/" },
      to: { pathNot: ["^src/", "^[.]", "^node_modules/effect/dist/[^/]+[.]js$"] }
    },
    {
      name: "no-effect-barrel",
      comment: 'Import Effect by module, `import * as Effect from "effect/Effect"`: the barrels double the cold start.',
      severity: "error",
      from: { path: "^src/" },
      to: { path: ["^node_modules/effect/dist/index[.]js$", "^node_modules/effect/dist/[^/]+/index[.]js$"] }
    },
    {
      name: "no-circular",
      comment: "No circular imports, not even of types.",
      severity: "error",
      from: {},
      to: { circular: true }
    },
    {
      name: "loop-behind-agent",
      comment: "The values and services of core know nothing of the loop: src/core/Agent.ts alone leads into it.",
      severity: "error",
      from: { path: "^src/core/", pathNot: "^src/core/(loop/|Agent[.]ts$)" },
      to: { path: "^src/core/loop/" }
    },
    {
      name: "no-unresolved",
      comment: "The import leads nowhere.",
      severity: "error",
      from: {},
      to: { couldNotResolve: true }
    },
    {
      name: "no-undeclared-dependency",
      comment:
        "What src/ imports must be a dependency or a peer dependency of the package. The program's own parts and the page are bundled with what they import.",
      severity: "error",
      from: { path: "^src/", pathNot: "^src/(cli/internal|page)/" },
      to: {
        dependencyTypes: ["npm-no-pkg", "npm-unknown", "npm-dev"],
        dependencyTypesNot: ["npm", "npm-peer", "npm-optional"]
      }
    }
  ],
  options: {
    // TypeScript 7 has no JavaScript API, so swc parses.
    parser: "swc",
    doNotFollow: { path: "node_modules" },
    enhancedResolveOptions: {
      exportsFields: ["exports"],
      conditionNames: ["@effect-deepagents/source", "import", "default"],
      extensions: [".ts", ".js", ".json"]
    }
  }
}
