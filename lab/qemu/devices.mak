# The devices that a lab host has: configs/devices/x86_64-softmmu/lab.mak of QEMU's source.
CONFIG_I440FX=y
CONFIG_Q35=y
CONFIG_VIRTIO_PCI=y
CONFIG_VIRTIO_9P=y
CONFIG_VIRTIO_BLK=y
CONFIG_VIRTIO_NET=y
