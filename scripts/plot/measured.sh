#!/bin/sh
# Cuts the measured curves that the plots of pcie_bench show out of the data of pcie-bench
# (github.com/pcie-bench/data, Apache-2.0), as condensed into bdw_latency.csv,
# bdw_bandwidth_size.csv and bdw_bandwidth_window.csv, and the same of ivb_ (T620) and hsw2620_ (T630):
#   scripts/plot/measured.sh FOLDER_WITH_THEM scenarios/data/pcie_bench
set -eu
in=$1
out=$2
base=bdw-Xeon-E5-2630v4-dell-t430
mkdir -p "$out"

# curve FILE HEADER SOURCE, rows from standard input
curve()
{
    {
        echo "# source: pcie-bench/data, Apache-2.0; $3"
        echo "$2"
        cat
    } > "$out/$1.csv"
}

# latency CONFIG FILE TEST CACHE -> window,size,average
latency()
{
    awk -F, -v c="$base-$1" -v f="$2" -v t="$3" -v k="$4" \
        '$1 == c && $2 == f && $3 == t && $4 == k { printf "%d,%d,%s\n", $5, $6, $7 }' \
        "$in/bdw_latency.csv"
}

for op in read:RD write_read:WRRD; do
    test=LAT_DMA_${op#*:}
    latency s0-s0-s0 lat_dma_sizes "$test" HWarm | awk -F, '$2 >= 8 { print $2 "," $3 }' |
        curve "latency_size_${op%:*}" transfer_bytes,latency_mean_ns \
            "$test lat_dma_sizes HWarm, 8 KiB window, $base-s0-s0-s0, average"
done

for cache in cold:Cold device_warm:DWarm; do
    latency s0-s0-s0 lat_cmd_sweep_rd_rnd_64 LAT_CMD_RD "${cache#*:}" |
        awk -F, '$1 >= 4096 { print $1 "," $3 }' |
        curve "latency_window_${cache%:*}" window_bytes,latency_mean_ns \
            "LAT_CMD_RD 64 B random ${cache#*:}, $base-s0-s0-s0, average"
done

for cache in cold:Cold host_warm:HWarm; do
    for memory in local:s0-s0-s0 remote:s0-s1-s1; do
        latency "${memory#*:}" lat_dma_sweep_rd_rnd_64 LAT_DMA_RD "${cache#*:}" |
            awk -F, -v m="${memory%:*}" '$1 == 1048576 { print m "," $3 }'
    done | curve "latency_numa_${cache%:*}" memory,latency_mean_ns \
        "LAT_DMA_RD 64 B random ${cache#*:}, 1 MiB window, $base-s0-s0-s0 and -s0-s1-s1, average"
done

latency s0-s0-s0-iommu-nosp lat_cmd_sweep_rd_rnd_64 LAT_CMD_RD Cold |
    awk -F, '$1 >= 4096 { print $1 "," $3 }' |
    curve latency_iommu window_bytes,latency_mean_ns \
        "LAT_CMD_RD 64 B random Cold, IOMMU with 4 KiB pages, $base-s0-s0-s0-iommu-nosp, average"

for op in read:RD write:WR read_write:RW; do
    test=BW_DMA_${op#*:}
    awk -F, -v c="$base-s0-s0-s0" -v t="$test" \
        '$1 == c && $2 == t && $3 == "HWarm" { print $5 "," $6 }' "$in/bdw_bandwidth_size.csv" |
        curve "bandwidth_size_${op%:*}" transfer_bytes,throughput_gbit_s \
            "$test HWarm, 8 KiB window, $base-s0-s0-s0, Gbit/s per direction"
done

for op in read:RD write:WR; do
    test=BW_DMA_${op#*:}
    for size in 64 128 256 512; do
        awk -F, -v c="$base-s0-s0-s0-iommu-nosp" -v t="$test" -v s="$size" \
            '$1 == c && $2 == t && $3 == "Rand" && $4 == "Cold" && $6 == s {
                printf "%d,%s\n", $5, $7 }' "$in/bdw_bandwidth_window.csv" |
            curve "bandwidth_iommu_${op%:*}_$size" window_bytes,throughput_gbit_s \
                "$test $size B random Cold, IOMMU with 4 KiB pages, $base-s0-s0-s0-iommu-nosp"
    done
done

# window FILES CONFIG CACHE -> window,average of the bulk engine's reads
window()
{
    awk -F, -v c="$2" -v k="$3" '$1 == c && $2 == "lat_dma_sweep_rd_rnd_64" && $3 == "LAT_DMA_RD" &&
        $4 == k { printf "%d,%s\n", $5, $7 }' "$in/${1}_latency.csv" | sort -n
}

# What the device wrote is cold on the T430 and the T630 (docs/sources.md#pcie-bench).
window bdw "$base-s0-s0-s0" HWarm | curve hosts_window_t430_host_warm window_bytes,latency_mean_ns \
    "LAT_DMA_RD 64 B random HWarm, $base-s0-s0-s0, average"

# The two other hosts: host, beginning of the files, configuration.
for host in t620:ivb:ib-Xeon-E5-2620v2_dell-t620-s0-s0-s0 t630:hsw2620:hsw-Xeon-E5-2620v3_dell-t630; do
    name=${host%%:*}
    config=${host##*:}
    files=${host#*:}
    files=${files%:*}
    for op in read:RD write_read:WRRD; do
        awk -F, -v c="$config" -v t="LAT_DMA_${op#*:}" \
            '$1 == c && $2 == "lat_dma_sizes" && $3 == t && !seen[$6]++ { print $6 "," $7 }' \
            "$in/${files}_latency.csv" | sort -n |
            curve "hosts_latency_${name}_${op%:*}" transfer_bytes,latency_mean_ns \
                "LAT_DMA_${op#*:} lat_dma_sizes HWarm, 8 KiB window, $config, average"
    done
    awk -F, -v c="$config-iommu-nosp" '$1 == c && $2 == "lat_cmd_sweep_rd_rnd_64" &&
        $3 == "LAT_CMD_RD" && $4 == "Cold" { printf "%d,%s\n", $5, $7 }' "$in/${files}_latency.csv" |
        sort -n | curve "hosts_iommu_$name" window_bytes,latency_mean_ns \
        "LAT_CMD_RD 64 B random Cold, IOMMU with 4 KiB pages, $config-iommu-nosp, average"
    for cache in host_warm:HWarm device_warm:DWarm; do
        [ "$name $cache" = "t630 device_warm:DWarm" ] || window "$files" "$config" "${cache#*:}" |
            curve "hosts_window_${name}_${cache%:*}" window_bytes,latency_mean_ns \
                "LAT_DMA_RD 64 B random ${cache#*:}, $config, average"
    done
    for op in read:RD write:WR read_write:RW; do
        awk -F, -v c="$config" -v t="BW_DMA_${op#*:}" \
            '$1 == c && $2 == t && $3 == "HWarm" { print $5 "," $6 }' \
            "$in/${files}_bandwidth_size.csv" | sort -n |
            curve "hosts_bandwidth_${name}_${op%:*}" transfer_bytes,throughput_gbit_s \
                "BW_DMA_${op#*:} HWarm, 8 KiB window, $config, Gbit/s per direction"
    done
    for op in read:RD write:WR; do
        for bytes in 64 128 256 512; do
            awk -F, -v c="$config-iommu-nosp" -v t="BW_DMA_${op#*:}" -v b="$bytes" \
                '$1 == c && $2 == t && $3 == "Rand" && $4 == "Cold" && $6 == b { printf "%d,%s\n", $5, $7 }' \
                "$in/${files}_bandwidth_window.csv" | sort -n |
                curve "hosts_iommu_bandwidth_${name}_${op%:*}_$bytes" window_bytes,throughput_gbit_s \
                    "BW_DMA_${op#*:} $bytes B random Cold, IOMMU with 4 KiB pages, $config-iommu-nosp"
        done
    done
done
