#!/usr/bin/env bash
# Builds libraries.min.js and libraries.min.css anew from the npm packages pinned in package-lock.json.
# Needs Node.js 20 or later with npm. The same versions give the same bytes; their SHA-256 stand in README.md.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here"/package.json "$here"/package-lock.json "$here"/entry.mjs "$work"
cd "$work"
npm ci --no-audit --no-fund
licences=$(cd "$here/licences" && for file in *.txt; do printf '\n== %s\n\n' "${file%.txt}"; cat "$file"; done)
short=$(sed '/^== echarts-LICENSE$/,/^== echarts-NOTICE$/{/^== /!d}' <<<"$licences")
notice="/*! Apache ECharts 6.1.0 (Apache-2.0, apache.org/licenses/LICENSE-2.0), ZRender 6.1.0, Tabulator 6.5.3, tslib
$short
*/"
npx esbuild entry.mjs --bundle --minify --format=iife --global-name=libraries --target=es2020 --charset=ascii \
  --legal-comments=none --banner:js="$notice" --outfile="$here/libraries.min.js"
npx esbuild node_modules/tabulator-tables/dist/css/tabulator_simple.css --minify --charset=ascii \
  --legal-comments=none --outfile="$here/libraries.min.css"
sha256sum "$here"/libraries.min.*
