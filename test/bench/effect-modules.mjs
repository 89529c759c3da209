// The Effect modules that entries of dist/ import, found by reading their imports.
import { readFileSync } from "node:fs"

const imports = /^(?:import|export)\s(?:[^"']*?\sfrom\s)?["']([^"']+)["']/gm

export const effectModules = (...entries) => {
  const found = new Set()
  const seen = new Set()
  const visit = ({ href }) => {
    if (seen.has(href)) return
    seen.add(href)
    for (const [, specifier] of readFileSync(new URL(href), "utf8").matchAll(imports)) {
      if (specifier.startsWith(".")) visit(new URL(specifier, href))
      else if (specifier.startsWith("effect/")) found.add(specifier)
    }
  }
  for (const entry of ["index.js", ...entries]) visit(new URL(`../../dist/${entry}`, import.meta.url))
  return [...found].sort()
}
